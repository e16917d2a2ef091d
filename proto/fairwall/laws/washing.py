"""Detection by customer reports of a model that differs from the audited one.

**Exact reports.** Of n audited rows f are shown with decisions that differ from the deployed model's. A customer asks
that model about k rows, drawn at random once the f are settled. Of C(n, k) draws, all as likely, C(n - f, k) miss all
f: one is hit with probability 1 - C(n - f, k) / C(n, k).

**Reports that may be wrong**, each by itself with probability q < 1/2. The number h of false rows among the k is
hypergeometric. Each of them contradicts its report unless that is wrong, and each of the k - h others does if it is:
given h there are Bin(h, 1 - q) + Bin(k - h, q) contradictions. For an honest developer f = 0, and they are Bin(k, q).
Accusing from c contradictions on accuses an honest developer with probability P(Bin(k, q) >= c); `least` is the
smallest c that keeps this at an alarm level. For q = 0 that is 1, and no honest developer is ever accused.

The draw has to come after the f: a developer who knows the k rows first changes none of them, hence the commitment.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def detection(people: int, flips: int, checks: int, wrong: float = 0.0, least: int = 1) -> float:
    """Return the probability that at least `least` of the customer's reports contradict the audit.

    `people`, `flips`, `checks`: n audited rows, of which f <= n are shown otherwise and k <= n are checked. `wrong`:
    the probability that a report is wrong, in [0, 1/2).
    """
    found = 0.0
    log = np.append(0.0, np.cumsum(np.log(np.arange(1, people + 1))))  # logs of factorials

    def ways(of: int, some: int) -> float:
        return float(log[of] - log[some] - log[of - some])

    for hit in range(max(0, checks - (people - flips)), min(flips, checks) + 1):
        drawn = np.exp(ways(flips, hit) + ways(people - flips, checks - hit) - ways(people, checks))
        contradictions = np.convolve(_binomial(hit, 1 - wrong), _binomial(checks - hit, wrong))
        found += drawn * contradictions[least:].sum()
    return min(float(found), 1.0)


def least(checks: int, wrong: float, alarm: float) -> int:
    """Return the least number of contradictions, at least 1, from which to accuse.

    More than ``checks`` where no number of contradictions is rare enough. `checks` and `wrong` are as of `detection`;
    `alarm` is the largest probability of accusing an honest developer, in (0, 1).
    """
    tail: NDArray[np.float64] = np.append(np.cumsum(_binomial(checks, wrong)[::-1])[::-1], 0.0)
    return max(1, int(np.argmax(tail <= alarm)))


def _binomial(trials: int, probability: float) -> NDArray[np.float64]:
    """Return the probabilities of 0 to ``trials`` hits."""
    if probability in (0.0, 1.0):
        return np.asarray(np.eye(trials + 1)[trials if probability else 0], np.float64)
    hits = np.arange(trials + 1)
    ways = np.append(0.0, np.cumsum(np.log((trials - hits[:-1]) / hits[1:])))
    return np.asarray(np.exp(ways + hits * np.log(probability) + (trials - hits) * np.log1p(-probability)))
