"""Services of compliance."""
