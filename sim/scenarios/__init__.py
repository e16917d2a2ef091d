"""Scenario files: what any game's file holds, the cells of its sweep, and the shipped files themselves."""
