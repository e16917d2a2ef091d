"""Report of a curator run: its page, and its tables for a terminal."""
