"""Reads what parties recorded: files, calls, and the messages of each trial."""
