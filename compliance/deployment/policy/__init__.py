"""A deployment's policy: its sections, what is wrong with one, and what it has read."""
