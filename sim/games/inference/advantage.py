r"""An adversary's advantage at guessing the secret bit, its interval over data splits, and the price of many attacks.

**The advantage.** With guess g and bit b it is |d|, d = P(g=1 | b=1) - P(g=1 | b=0). An adversary that is always
wrong has d = -1 and knows everything. Balanced accuracy is 1/2 + d/2: accuracy at guessing b when b is a fair coin.

**Clustering.** Victims of one data split share the rows they were trained on, and their guesses come from the same
shadow models: the splits are independent, the victims are not. Split k has n_bk victims with bit b, of which x_bk
were guessed 1. With p_b = sum_k x_bk / sum_k n_bk, the estimate p_1 - p_0 deviates, linearised (each p_b is a ratio
of sums), by the sum of

    u_k = (x_1k - p_1 n_1k) / sum_k n_1k  -  (x_0k - p_0 n_0k) / sum_k n_0k,        sum_k u_k = 0,

so that its variance is estimated by K / (K-1) sum_k u_k^2 over the K splits (Cochran, Sampling Techniques, 1977,
section 6.8; Liang and Zeger, 1986), whatever the dependence within a split, and the interval is p_1 - p_0 plus or
minus the t-quantile with K - 1 degrees of freedom. A split may lack victims with one of the bits.

**When splits agree.** Where all splits give the same d, that variance is 0; where they are few, it is now and then
too small by chance. Even victims that are independent leave more doubt. So the interval is the hull of the one above
and of one for independent victims, which estimates no variance: with as many victims of each bit, n in all, the
number that were guessed right is a sum of n independent indicators of mean probability 1/2 + d/2, whose tails are at
most the binomial's (Hoeffding, Annals of Mathematical Statistics 1956, theorem 4), so that Clopper and Pearson's
limits [l, h] on that probability hold, and d lies in [2 l - 1, 2 h - 1]. Where the referee's coin gave n_1 and n_0
victims that differ, n is taken to be 2 min(n_1, n_0), and n (1/2 + d/2) the number guessed right, whole or not: too
few, to be on the safe side.

Measured in simulation, 10 splits of 20 victims, 2,000 repetitions: where splits are alike, the interval at 95% misses
at most 3% of the time, also where guesses are right 98 to 100% of the time. Where splits differ, t suits a skewed law
less well: for an attack that is right 90% of the time it misses 6.5% with a correlation of 0.1 within splits and 10%
with 0.3 (at 99.9%: 0.6% and 2%); for one that is right half of the time 5% with either. With fewer splits the latter
two grow: a published interval is over ten splits at least.

What no interval here can exclude: a kind of split, of probability q, on which everything is otherwise, and which did
not occur among the K. That happens with probability (1 - q)^K, so at level alpha q can be up to 1 - alpha^(1/K).

**|d|.** An interval for d gives one for |d|: from the distance of its nearer end to 0, or from 0 where it contains 0.
By itself |d| is above 0 for an adversary that knows nothing; the interval is what to read.

**Many attacks.** Who tries m attacks sees the best of m. Intervals at level alpha / m each hold all together with
probability 1 - alpha at least (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairwall.laws.binomial import lower_limit, upper_limit
from sim.report.estimates import Estimate, t_interval


@dataclass(frozen=True)
class Advantage:
    """What an attack knows of the bit.

    Attributes
    ----------
    advantage : |d|, in [0, 1].
    difference : d, in [-1, 1]; negative where the adversary is more often wrong than right.
    """

    advantage: Estimate
    difference: Estimate

    @property
    def accuracy(self) -> Estimate:
        """Balanced accuracy at guessing the bit, in percent; 50 is a coin's."""
        return self.difference.mapped(lambda d: 50 + 50 * d)


def measure(
    bits: NDArray[np.integer] | Sequence[int],
    guesses: NDArray[np.integer] | Sequence[int],
    splits: NDArray[np.integer] | Sequence[int],
    *,
    level: float = 0.05,
    attacks: int = 1,
) -> Advantage:
    """Estimate one attack's advantage.

    Parameters
    ----------
    bits, guesses : (victims,), each 0 or 1.
    splits : (victims,), which data split each belongs to. With fewer than 2 there is no interval but the whole range.
    level : in (0, 1): with what probability some of all attacks' intervals may miss.
    attacks : how many were tried, at least 1.
    """
    secret, guessed, split = (np.asarray(values) for values in (bits, guesses, splits))
    if not secret.shape == guessed.shape == split.shape or secret.ndim != 1:
        raise ValueError("every victim has a bit, a guess and a split")
    if not (0 < level < 1 and attacks >= 1):
        raise ValueError("the level lies in (0, 1), and there is at least one attack")
    _, cluster = np.unique(split, return_inverse=True)
    # (bit, split)
    counts = np.stack([np.bincount(cluster[secret == b], minlength=cluster.max() + 1) for b in (0, 1)])
    ones = np.stack([np.bincount(cluster[(secret == b) & (guessed == 1)], minlength=counts.shape[1]) for b in (0, 1)])
    if (counts.sum(1) == 0).any():
        raise ValueError("an advantage needs victims of both bits")
    totals = counts.sum(1)
    rates = ones.sum(1) / totals
    d = float(rates[1] - rates[0])
    deviations = (ones - rates[:, None] * counts) / totals[:, None]
    own = level / attacks
    clustered, exact = _by_t(d, deviations[1] - deviations[0], own), _independent(d, totals, own)
    low, high = max(min(clustered[0], exact[0]), -1.0), min(max(clustered[1], exact[1]), 1.0)
    nearer = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
    return Advantage(Estimate(abs(d), nearer, max(abs(low), abs(high))), Estimate(d, low, high))


def _by_t(value: float, deviations: NDArray[np.float64], level: float) -> tuple[float, float]:
    """Compute the t-interval from the splits' deviations."""
    splits = len(deviations)
    if splits < 2:
        return -math.inf, math.inf
    error = math.sqrt(splits / (splits - 1) * float(np.sum(deviations**2)))
    return t_interval(value, error, splits - 1, level)


def _independent(d: float, totals: NDArray[np.intp], level: float) -> tuple[float, float]:
    """Compute the interval of d for independent victims."""
    victims = 2 * int(totals.min())
    right = victims * (1 + d) / 2
    return 2 * lower_limit(right, victims, level / 2) - 1, 2 * upper_limit(right, victims, level / 2) - 1
