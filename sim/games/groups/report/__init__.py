"""Report of a run of the game of groups: its page, and its table for a terminal."""
