"""The developer in the overfit game."""
