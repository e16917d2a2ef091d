"""What the lines of a cell's trials come to: means with their standard deviations, and counts with their intervals.

`sim.report.columns` reads them by these names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sim.games.game import Line
from sim.report.estimates import share_interval


def mean(lines: Sequence[Line], key: str) -> float | None:
    """Return the mean of a number over the trials that have one; None where none has."""
    found = _numbers(lines, key)
    return float(np.mean(found)) if found else None


def sd(lines: Sequence[Line], key: str) -> float | None:
    """Return its standard deviation in a single trial, n - 1 in the denominator; None for less than two."""
    found = _numbers(lines, key)
    return float(np.std(found, ddof=1)) if len(found) > 1 else None


def means(lines: Sequence[Line], keys: Sequence[str]) -> dict[str, float | None]:
    """Give numbers' means, and their standard deviations as ``<key>_sd``."""
    return {name: found for key in keys for name, found in ((key, mean(lines, key)), (f"{key}_sd", sd(lines, key)))}


def percent(lines: Sequence[Line], keys: Sequence[str]) -> dict[str, float | None]:
    """Give the same of what was so or not, in percent."""
    return means([{key: 100.0 * line[key] for key in keys} for line in lines], keys)


def counts(lines: Sequence[Line], keys: Sequence[str]) -> dict[str, Any]:
    """Count in how many trials something was so; None where in none it could be.

    ``<key>_low`` and ``<key>_high`` are the 95% interval of the share of the trials in which it could.
    """
    found: dict[str, Any] = {}
    for key in keys:
        hits = _numbers(lines, key)
        ends = share_interval(int(sum(hits)), len(hits)) if hits else (None, None)
        found |= {key: sum(hits) if hits else None, f"{key}_low": ends[0], f"{key}_high": ends[1]}
    return found


def _numbers(lines: Sequence[Line], key: str) -> list[float]:
    return [line[key] for line in lines if isinstance(line.get(key), int | float)]
