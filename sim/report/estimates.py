"""Means and shares of a run with their intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Estimate:
    """A mean over trials and the half width of its 95% t interval; None where there is one trial alone."""

    mean: float
    half: float | None

    def __str__(self) -> str:
        # With spaces that no line breaks at.
        text = f"{self.mean:.1f}" if self.half is None else f"{self.mean:.1f}\u00a0±\u00a0{self.half:.1f}"
        return text.replace("-", "−")

    @property
    def sign(self) -> int:
        """Give 1 or -1 where the whole interval lies above or below zero, else 0."""
        if self.half is None or abs(self.mean) <= self.half:
            return 0
        return 1 if self.mean > 0 else -1


def half_width(sd: float | None, trials: int) -> float | None:
    """Give the half width of the 95% t interval of a mean over trials; None for a single trial.

    Parameters
    ----------
    sd : float or None
        The standard deviation of a single trial, n - 1 in the denominator.
    trials : int
    """
    if sd is None or trials < 2:
        return None
    from scipy.special import stdtrit

    return float(stdtrit(trials - 1, 0.975)) * sd / math.sqrt(trials)


def estimate(values: Sequence[float]) -> Estimate:
    """Estimate the mean of at least one value."""
    sd = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return Estimate(float(np.mean(values)), half_width(sd, len(values)))


def share_interval(successes: int, trials: int) -> tuple[float, float]:
    """Give the 95% interval of a share, by Clopper and Pearson: it holds for any share and any number of trials."""
    from scipy.special import betaincinv

    missed = trials - successes
    low = float(betaincinv(successes, missed + 1, 0.025)) if successes else 0.0
    high = float(betaincinv(successes + 1, missed, 0.975)) if missed else 1.0
    return low, high
