"""Bounds on a probability from a count of hits, by Clopper and Pearson (Biometrika 1934).

Of `count` hits in `trials` independent draws, the hit probability is at least the level-quantile of
Beta(count, trials - count + 1) with probability at least 1 - level, and at most the (1 - level)-quantile of
Beta(count + 1, trials - count), whatever the probability is. The privacy auditor's bounds and the reports' intervals
are both made of these two.
"""


def lower_limit(count: float, trials: float, level: float) -> float:
    """Return a lower bound on a probability that fails at most at this level, in (0, 1).

    Hits and draws need not be whole: an effective number of draws may not be.
    """
    if count <= 0:
        return 0.0
    # Imported here: scipy takes a second to load.
    from scipy.special import betaincinv

    return float(betaincinv(count, trials - count + 1, level))


def upper_limit(count: float, trials: float, level: float) -> float:
    """Return an upper bound on a probability that fails at most at this level. Arguments as for `lower_limit`."""
    return 1.0 - lower_limit(trials - count, trials, level)
