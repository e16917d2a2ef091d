"""The developer's part in the game of the curator."""
