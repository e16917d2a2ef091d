"""The developer in the inference game."""
