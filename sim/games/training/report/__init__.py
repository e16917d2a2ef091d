"""Report of a training run: its page, and its tables for a terminal."""
