"""Report of an overfit run: its page, and its table for a terminal."""
