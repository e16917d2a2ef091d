"""What a run of the overfit game comes to: its page, and its table for a terminal."""
