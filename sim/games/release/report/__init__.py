"""Report of a release run: its page, and its tables for a terminal."""
