r"""Confidence bounds on epsilon, and how one level pays for many looks.

**From an event to epsilon.** (epsilon, delta)-privacy says P(E) <= exp(epsilon) P'(E) + delta for every event E. With a
lower bound on P(E) and an upper bound on P'(E) by Clopper and Pearson (`fairwall.laws.binomial`), each at half the
level,

    epsilon >= ln((P_low - delta) / P'_high)     with probability at least 1 - level.

**Many looks.** Look k = 1, 2, ... spends level / (k (k+1)); the sum is at most the level for any number of looks. So
all bounds of an audit hold together with probability at least 1 - level, and the audit may stop at any look.
"""

from __future__ import annotations

import math

from fairwall.laws.binomial import lower_limit, upper_limit


def epsilon_bound(hits: int, neighbour_hits: int, trials: int, delta: float, level: float) -> float:
    """Return a lower bound on epsilon from one event, at least 0, that fails with a probability of at most `level`.

    The event happened in `hits` of `trials` sessions (at least 1) on a data set, and in `neighbour_hits` of `trials` on
    its neighbour, all independent of how the event was chosen. `delta` is part of the claim. `level` is in (0, 1).
    """
    low = lower_limit(hits, trials, level / 2) - delta
    high = upper_limit(neighbour_hits, trials, level / 2)
    return max(0.0, math.log(low / high)) if low > 0 else 0.0


def reach(trials: int, delta: float, level: float) -> float:
    """Return the largest `epsilon_bound` that `trials` sessions can give: all hits on one side, none on the other."""
    return epsilon_bound(trials, 0, trials, delta, level)


def share(level: float, look: int) -> float:
    """Return the part of the level that look number `look`, from 1, may spend."""
    return level / (look * (look + 1))
