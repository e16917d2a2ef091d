"""Plays a run: starts the parties, deals, records, and injects the faults that a scenario names."""
