"""Limits of the protocol that are numbers."""

EPSILON_MIN = 1e-12
"""The least epsilon that a batch may be asked for at: below, a noise scale would leave the range of float64."""
