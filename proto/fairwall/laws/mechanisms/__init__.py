"""Mechanisms, public facts only: their table, the noise they need, and those that answer with a choice."""
