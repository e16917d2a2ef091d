"""Counts of people by group, and what is estimated from them."""
