r"""What a count tells of one person, Alice, and the most that it may tell under differential privacy.

**The game.** The secret s is a fair coin: Alice's answer to a yes-or-no question, or whether she takes part. Released
is the number of people in her cell who answered yes,

    y = x + e(s) + z,

x of the k others in the cell, e(s) in {0, 1} her own part in it, and z two-sided geometric noise, P(z) = (1 - a) a^|z|
/ (1 + a) with a = exp(-epsilon) (Ghosh, Roughgarden, Sundararajan, STOC 2009). Her part moves y by at most 1, so y is
epsilon-private for her. Counts of other cells, and who takes part, say nothing more of s. By Bayes's rule

    P(s = 1 | y) = P(y | 1) / (P(y | 0) + P(y | 1)),    P(y | s) = sum over x of P(x | s) P(z = y - x - e(s)).

* identity, attribute: e(s) = s if Alice takes part, else 0. Others answer yes half of the time, whatever s is.
* presence: e(s) = s, for Alice's answer is known to be yes. Others as above.
* inferential: a fact of the population, t, is a fair coin too: people of the cell answer yes with probability 1 - r
  where t = 1 and r where t = 0, Alice as they do. Then P(t = 1 | s = 1) = 1 - r and P(t = 1 | s = 0) = r, and x depends
  on s, whether Alice takes part or not.

Whoever knows the others' answers knows x; else x is binomial, or in the inferential mode a mixture of two binomials. Of
records as they are the count follows, without noise.

**The advantage** of a guess g at s is P(g = 1 | s = 1) - P(g = 1 | s = 0), whatever the prior. For a fair coin it is
2 P(g = s) - 1. Bayes's guess, 1 where P(y | 1) >= P(y | 0), has the largest one: the total variation of the two laws,

    1/2 sum over y of |P(y | 1) - P(y | 0)|.

**The bound.** Let P(y | 1) <= e^epsilon P(y | 0) and the other way round. On the set of y where g = 1 let the laws have
mass p and q. Then p <= e^epsilon q, and 1 - q <= e^epsilon (1 - p) for the rest. The largest p - q is where both are
equalities, p = e^epsilon / (1 + e^epsilon) and q = 1 - p, so that

    p - q <= (e^epsilon - 1) / (e^epsilon + 1) = tanh(epsilon / 2).

Known x and geometric noise attain it: p - q is then P(z = 0). It is about neighbours: s must change Alice's own record
and nothing else. So it applies to identity, attribute and presence, where x does not depend on s. In the inferential
mode x does: the two laws of y are no neighbours', epsilon promises nothing about s, and a study large enough tells t,
and with it s up to an advantage of 1 - 2 r, at every epsilon.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

MODES = ("identity", "attribute", "inferential", "presence")
"""Dalenius's three, and whether somebody takes part at all."""

PRIOR = 0.5
"""The secret is a fair coin."""

EPSILON_LEAST = 0.01
"""Below it the noise is wider than the laws are worth computing."""

_TAIL = 40.0
"""Noise beyond this over epsilon has a probability of exp(-40)."""


@dataclass(frozen=True)
class Known:
    """What an attacker knows before the release.

    Parameters
    ----------
    mode : one of ``MODES``.
    epsilon : of the count's noise, at least ``EPSILON_LEAST``; infinite for none.
    others : k, how many others are in Alice's cell.
    others_yes : x, where it is known.
    takes_part : whether Alice takes part; None where that is the secret.
    rate : r, in (0, 1/2); of the inferential mode.
    """

    mode: str
    epsilon: float
    others: int
    others_yes: int | None
    takes_part: bool | None
    rate: float


def bound(epsilon: float) -> float:
    """Give the largest advantage at one bit of two neighbours that epsilon allows: tanh(epsilon / 2), in [0, 1]."""
    return math.tanh(epsilon / 2)


def bound_applies(mode: str) -> bool:
    """Say whether the secret changes nothing but Alice's own record."""
    return mode != "inferential"


def posterior(known: Known, count: float) -> float:
    """Give P(s = 1 | y), in [0, 1]; the prior for a count that no study can have."""
    if known.others_yes is not None:
        count -= known.others_yes
    alone = _without_others(known)
    first, laws = _laws(alone)
    # Below 0, and above what all others and Alice make, the noise's tails have one ratio.
    nearest = min(max(int(count), 0), alone.others + 1)
    if math.isinf(known.epsilon) and nearest != count:
        return PRIOR
    no, yes = laws[:, nearest - first].tolist()
    return float(yes / (no + yes)) if no + yes > 0 else PRIOR


def advantage(known: Known) -> float:
    """Give the largest advantage that any guess from the count has, in [0, 1]: the laws' total variation."""
    _, laws = _laws(_without_others(known))
    return float(0.5 * np.abs(laws[1] - laws[0]).sum())


def _without_others(known: Known) -> Known:
    """Take the others out where they are known: the count less their part is about Alice alone."""
    return known if known.others_yes is None else replace(known, others=0, others_yes=None)


@functools.lru_cache(maxsize=256)
def _laws(known: Known) -> tuple[int, NDArray[np.float64]]:
    """Give the first count, and the laws of the counts from there on: shape (2, counts), for s = 0 and s = 1."""
    reach = 0 if math.isinf(known.epsilon) else math.ceil(_TAIL / known.epsilon)
    steps = np.abs(np.arange(-reach, reach + 1))
    noise = np.exp(-known.epsilon * steps) * bound(known.epsilon) if reach else np.ones(1)
    rows = []
    for secret in (0, 1):
        counts = np.zeros(known.others + 2)
        own = secret if known.takes_part in (None, True) else 0
        counts[own : own + known.others + 1] = _others(known, secret)
        rows.append(np.convolve(counts, noise))
    laws = np.stack(rows)
    laws.flags.writeable = False
    return -reach, laws


def _others(known: Known, secret: int) -> NDArray[np.float64]:
    """Give the law of x given s, shape (k + 1,)."""
    if known.mode != "inferential":
        return _binomial(known.others, 0.5)
    linked = 1 - known.rate if secret else known.rate
    return linked * _binomial(known.others, 1 - known.rate) + (1 - linked) * _binomial(known.others, known.rate)


@functools.lru_cache(maxsize=256)
def _binomial(trials: int, rate: float) -> NDArray[np.float64]:
    """Give the binomial law, shape (trials + 1,)."""
    logs = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, trials + 1)))))
    yes = np.arange(trials + 1)
    law: NDArray[np.float64] = np.exp(
        logs[-1] - logs - logs[::-1] + yes * math.log(rate) + (trials - yes) * math.log1p(-rate)
    )
    law.flags.writeable = False
    return law
