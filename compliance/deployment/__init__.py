"""A service of one's own data, by a policy, with no referee."""
