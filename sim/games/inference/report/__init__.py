"""Report of an inference run: its page, and its tables for a terminal."""
