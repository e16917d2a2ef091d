"""What a run of the washing game comes to: its page, and its table for a terminal."""
