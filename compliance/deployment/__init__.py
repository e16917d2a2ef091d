"""A service for an operator's own data, configured by a policy, with no referee."""
