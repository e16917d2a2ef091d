"""Reads what parties recorded: files, calls, and what the calls of a trial come to."""
