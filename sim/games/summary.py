"""Means and counts of the lines of a cell's trials, under the names that `sim.report.columns` reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sim.games.game import Line
from sim.report.estimates import share_interval


def mean(lines: Sequence[Line], key: str) -> float | None:
    """Return the mean of a number over the trials that have one, or None."""
    found = _numbers(lines, key)
    return float(np.mean(found)) if found else None


def sd(lines: Sequence[Line], key: str) -> float | None:
    """Return a number's standard deviation over trials, n - 1 in the denominator; None for fewer than two."""
    found = _numbers(lines, key)
    return float(np.std(found, ddof=1)) if len(found) > 1 else None


def means(lines: Sequence[Line], keys: Sequence[str]) -> dict[str, float | None]:
    """Return numbers' means by key, and their standard deviations as `<key>_sd`."""
    return {name: found for key in keys for name, found in ((key, mean(lines, key)), (f"{key}_sd", sd(lines, key)))}


def percent(lines: Sequence[Line], keys: Sequence[str]) -> dict[str, float | None]:
    """Return means and standard deviations, as `means` does, of truth values in percent."""
    return means([{key: 100.0 * line[key] for key in keys} for line in lines], keys)


def counts(lines: Sequence[Line], keys: Sequence[str]) -> dict[str, Any]:
    """Return the number of trials in which each key is true, or None; `_low` and `_high` are its share's 95% limits."""
    found: dict[str, Any] = {}
    for key in keys:
        hits = _numbers(lines, key)
        ends = share_interval(int(sum(hits)), len(hits)) if hits else (None, None)
        found |= {key: sum(hits) if hits else None, f"{key}_low": ends[0], f"{key}_high": ends[1]}
    return found


def _numbers(lines: Sequence[Line], key: str) -> list[float]:
    return [line[key] for line in lines if isinstance(line.get(key), int | float)]
