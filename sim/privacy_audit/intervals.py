r"""Confidence bounds, and how one level pays for many looks.

**From an event to epsilon.** (epsilon, delta)-privacy says P(E) <= exp(epsilon) P'(E) + delta for every event E. With a
lower bound on P(E) and an upper bound on P'(E) by Clopper and Pearson (`fairwall.laws.binomial`), each at half the
level,

    epsilon >= ln((P_low - delta) / P'_high)     with probability at least 1 - level.

**Many looks.** Look k = 1, 2, ... spends level / (k (k+1)), and these add up to at most the level however many looks
there are. So all bounds of an audit hold together with probability at least 1 - level, and it may stop when it likes.
"""

from __future__ import annotations

import math

from fairwall.laws.binomial import lower_limit, upper_limit


def epsilon_bound(hits: int, neighbour_hits: int, trials: int, delta: float, level: float) -> float:
    """Return a lower bound on epsilon from one event, at least 0, that fails at most at this level, in (0, 1).

    The event happened in so many of the trials on a data set, and of as many, at least 1, on its neighbour. These are
    independent of how the event was chosen.
    """
    low = lower_limit(hits, trials, level / 2) - delta
    high = upper_limit(neighbour_hits, trials, level / 2)
    return max(0.0, math.log(low / high)) if low > 0 else 0.0


def reach(trials: int, delta: float, level: float) -> float:
    """Return the largest `epsilon_bound` that so many sessions can give: every one a hit here, and none there."""
    return epsilon_bound(trials, 0, trials, delta, level)


def share(level: float, look: int) -> float:
    """Return what the look with this number, from 1, may spend of the level."""
    return level / (look * (look + 1))
