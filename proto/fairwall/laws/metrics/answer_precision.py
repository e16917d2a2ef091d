"""Precision of written answers. Rounding is no privacy: it leaves an attacker fewer bits, not none."""

from typing import Literal, TypeAlias

import numpy as np

from fairwall.arrays import Floats
from fairwall.laws.noise.distributions import Uniform

Precision: TypeAlias = Literal["float64", "float32"] | int
"""A float format, or a number of decimals to which answers are rounded, from 0 to `DECIMALS_MAX`."""

DECIMALS_MAX = 15
"""Most decimals: beyond, float64 has none to keep of a gap."""

DECIMALS = 2
"""Decimals that the mechanism `round` keeps."""


def written_down(values: Floats, precision: Precision) -> Floats:
    """Return values as they are written down; NaN stays NaN, and 0 has no sign."""
    if precision == "float64":
        return values
    if precision == "float32":
        return values.astype(np.float32).astype(np.float64)
    # Adding 0.0 turns -0.0 into 0.0.
    return np.round(values, precision) + 0.0


def rounding_law(decimals: int) -> Uniform:
    """Return the error distribution of a number rounded to `decimals` decimals."""
    return Uniform(0.5 * 10.0**-decimals)


def spacing(values: Floats, precision: Precision) -> Floats:
    """Return the distance from each value to the next one that can be written down, in the values' shape."""
    if precision == "float64":
        return np.spacing(np.abs(values))
    if precision == "float32":
        return np.spacing(np.abs(values).astype(np.float32)).astype(np.float64)
    return np.full(values.shape, 10.0**-precision)
