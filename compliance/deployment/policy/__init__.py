"""A deployment's policy: its sections, its validation, and the data it names."""
