"""What a run of the game of the curator comes to: its page, and its table for a terminal."""
