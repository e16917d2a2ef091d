"""Bounds on a probability from a count of hits, by Clopper and Pearson (Biometrika 1934).

Of `count` hits in `trials` independent draws, the hit probability is at least the level-quantile of
Beta(count, trials - count + 1) with probability at least 1 - level, and at most the (1 - level)-quantile of
Beta(count + 1, trials - count), for any true probability. The privacy auditor and the reports' intervals use them.
"""


def lower_limit(count: float, trials: float, level: float) -> float:
    """Return a lower bound that fails with probability at most `level`, in (0, 1); counts need not be whole."""
    if count <= 0:
        return 0.0
    # Imported here: scipy takes a second to load.
    from scipy.special import betaincinv

    return float(betaincinv(count, trials - count + 1, level))


def upper_limit(count: float, trials: float, level: float) -> float:
    """Return an upper bound that fails with probability at most `level`. Arguments as of `lower_limit`."""
    return 1.0 - lower_limit(trials - count, trials, level)
