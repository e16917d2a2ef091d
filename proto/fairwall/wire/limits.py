"""Numeric limits of the protocol."""

EPSILON_MIN = 1e-12
"""Least epsilon of a batch: below, a noise scale would leave the range of float64."""
