"""How precisely answers are written down. It is no privacy: rounding leaves an attacker fewer bits, not none."""

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairwall.laws.noise import Uniform

Precision: TypeAlias = Literal["float64", "float32"] | int
"""A float of so many bits, or a number rounded to so many decimals, from 0 to `DECIMALS_MAX`."""

DECIMALS_MAX = 15
"""Beyond, float64 has no more decimals to keep of a gap."""

DECIMALS = 2
"""What the mechanism `round` keeps."""


def written_down(values: NDArray[np.float64], precision: Precision) -> NDArray[np.float64]:
    """Round values to what is written down of them; NaN stays NaN, and 0 has no sign."""
    if precision == "float64":
        return values
    if precision == "float32":
        return values.astype(np.float32).astype(np.float64)
    # Adding 0.0 turns -0.0 into 0.0.
    return np.round(values, precision) + 0.0


def rounding_law(decimals: int) -> Uniform:
    """Return the law of the error of a number rounded to so many decimals."""
    return Uniform(0.5 * 10.0**-decimals)


def spacing(values: NDArray[np.float64], precision: Precision) -> NDArray[np.float64]:
    """Return how far the next number that can be written down is from each, in the values' shape."""
    if precision == "float64":
        return np.spacing(np.abs(values))
    if precision == "float32":
        return np.spacing(np.abs(values).astype(np.float32)).astype(np.float64)
    return np.full(values.shape, 10.0**-precision)
