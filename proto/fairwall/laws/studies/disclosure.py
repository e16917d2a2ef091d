"""Disclosure about one person, Alice, by a count, and the bound that differential privacy sets.

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

An attacker who knows the others' answers knows x; else x is binomial, or in the inferential mode a mixture of two
binomials. Exact records give the count without noise.

**The advantage** of a guess g at s is P(g = 1 | s = 1) - P(g = 1 | s = 0), whatever the prior. For a fair coin it is
2 P(g = s) - 1. Bayes's guess, 1 where P(y | 1) >= P(y | 0), has the largest: the total variation of the distributions,

    1/2 sum over y of |P(y | 1) - P(y | 0)|.

**The bound.** Let P(y | 1) <= e^epsilon P(y | 0) and vice versa. On the set of y where g = 1 let the distributions have
mass p and q. Then p <= e^epsilon q, and 1 - q <= e^epsilon (1 - p) for the rest. The largest p - q is where both are
equalities, p = e^epsilon / (1 + e^epsilon) and q = 1 - p, so that

    p - q <= (e^epsilon - 1) / (e^epsilon + 1) = tanh(epsilon / 2).

Known x and geometric noise attain it: p - q is then P(z = 0). It is about neighbours: s must change Alice's own record
and nothing else. So it applies to identity, attribute and presence, where x does not depend on s. In the inferential
mode x does: the two distributions of y are not neighbours', epsilon promises nothing about s, and a study large enough
tells t, and with it s up to an advantage of 1 - 2 r, at every epsilon.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace

import numpy as np

from fairwall.arrays import Floats

MODES = ("identity", "attribute", "inferential", "presence")
"""Dalenius's three modes, and the secret whether somebody takes part."""

PRIOR = 0.5
"""Prior probability of the secret: a fair coin."""

EPSILON_LEAST = 0.01
"""Least epsilon: below, the noise is too wide to compute the distributions."""

_TAIL = 40.0
"""Noise beyond this over epsilon has a probability of exp(-40)."""


@dataclass(frozen=True)
class PriorKnowledge:
    """An attacker's knowledge before the release.

    Parameters
    ----------
    mode : one of ``MODES``.
    epsilon : of the count's noise, at least ``EPSILON_LEAST``; infinite for none.
    others : k, the number of others in Alice's cell.
    others_yes : x, where it is known.
    takes_part : whether Alice takes part; None where that is the secret.
    rate : r, in (0, 1/2); for the inferential mode.
    """

    mode: str
    epsilon: float
    others: int
    others_yes: int | None
    takes_part: bool | None
    rate: float


def bound(epsilon: float) -> float:
    """Return the largest advantage at one bit of two neighbours that epsilon allows: tanh(epsilon / 2), in [0, 1]."""
    return math.tanh(epsilon / 2)


def bound_applies(mode: str) -> bool:
    """Return whether the secret changes only Alice's own record."""
    return mode != "inferential"


def posterior(known: PriorKnowledge, count: float) -> float:
    """Return P(s = 1 | y), in [0, 1]; the prior for a count that no study can have."""
    if known.others_yes is not None:
        count -= known.others_yes
    alone = _without_others(known)
    first, laws = _laws(alone)
    # Below 0 and above the number of people the noise's tails have a constant ratio.
    nearest = min(max(int(count), 0), alone.others + 1)
    if math.isinf(known.epsilon) and nearest != count:
        return PRIOR
    no, yes = laws[:, nearest - first].tolist()
    return float(yes / (no + yes)) if no + yes > 0 else PRIOR


def advantage(known: PriorKnowledge) -> float:
    """Return the largest advantage of any guess from the count, in [0, 1]: the total variation distance."""
    _, laws = _laws(_without_others(known))
    return float(0.5 * np.abs(laws[1] - laws[0]).sum())


def _without_others(known: PriorKnowledge) -> PriorKnowledge:
    """Return the same game without the others where their answers are known."""
    return known if known.others_yes is None else replace(known, others=0, others_yes=None)


@functools.lru_cache(maxsize=256)
def _laws(known: PriorKnowledge) -> tuple[int, Floats]:
    """Return the first count, and the distributions from there on for s = 0 and s = 1, shape (2, counts)."""
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


def _others(known: PriorKnowledge, secret: int) -> Floats:
    """Return the distribution of x given s, shape (k + 1,)."""
    if known.mode != "inferential":
        return _binomial(known.others, 0.5)
    linked = 1 - known.rate if secret else known.rate
    return linked * _binomial(known.others, 1 - known.rate) + (1 - linked) * _binomial(known.others, known.rate)


@functools.lru_cache(maxsize=256)
def _binomial(trials: int, rate: float) -> Floats:
    """Return the binomial distribution, shape (trials + 1,)."""
    logs = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, trials + 1)))))
    yes = np.arange(trials + 1)
    law: Floats = np.exp(logs[-1] - logs - logs[::-1] + yes * math.log(rate) + (trials - yes) * math.log1p(-rate))
    law.flags.writeable = False
    return law
