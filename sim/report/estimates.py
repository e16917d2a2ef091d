"""Intervals for what is estimated from trials."""

from __future__ import annotations


def share_interval(successes: int, trials: int) -> tuple[float, float]:
    """Give the 95% interval of a share, by Clopper and Pearson: it holds for any share and any number of trials."""
    from scipy.special import betaincinv

    missed = trials - successes
    low = float(betaincinv(successes, missed + 1, 0.025)) if successes else 0.0
    high = float(betaincinv(successes + 1, missed, 0.975)) if missed else 1.0
    return low, high
