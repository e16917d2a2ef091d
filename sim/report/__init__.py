"""The kit that reports are made with: it knows no game."""
