"""Report of a disclosure run: its page, and its tables for a terminal."""
