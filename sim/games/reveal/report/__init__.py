"""Report of a reveal run: its page, and its tables for a terminal."""
