"""Fairness metrics: their values, sensitivities and group sizes, and a model's utility."""
