"""Plays a run: starts the parties, deals the trials, records messages, and injects the scenario's faults."""
