"""The developer in the curator game."""
