"""The developer in the reveal game."""
