"""What a run of the game of groups comes to: its page, and its table for a terminal."""
