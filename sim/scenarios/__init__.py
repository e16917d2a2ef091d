"""Scenario files: the part that all games share, the cells of a sweep, and the shipped files themselves."""
