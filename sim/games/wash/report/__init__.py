"""Report of a washing run: its page, and its table for a terminal."""
