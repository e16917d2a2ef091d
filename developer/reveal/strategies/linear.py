"""Reveal from a linear system of equations (Hamman, Chen, Dutta, FAccT 2023, Theorem 1 and Algorithm 1).

Row i is h0 with person i's score h replaced by 1 - h. With ``d = 1 - 2 h0`` and ``t = h0 v``, its gap is

    SP_i = t + d_i v_i.

One more equation needs no query: ``sum v = N1 (1/N1) - N0 (1/N0) = 0``, the gap of the model that accepts everyone. So
n - 1 queries suffice without any size query (the paper's Remark 3 gets the last person from the sizes, with numerical
trouble where N0 is close to N1).

v is determined as follows. From ``v_i = (SP_i - t) / d_i`` for all i but k, and ``v_k`` from the sum, t satisfies

    t (1 + sum_i (h0_i - h0_k) / d_i) = known,

and by ``h0 = (1 - d) / 2`` the factor is ``(2 - n + D d_k) / 2`` with ``D = sum_i 1 / d_i``. It can be 0: where h0
accepts one person only, by leaving out anybody else. But ``c_k = D d_k`` satisfy ``sum 1 / c_k = 1``, so that one of
them is negative or one is at least n: the best k, which is left out, has a factor of size 1 or more, for n = 3 a half.
(With D = 0 every k has ``(2 - n) / 2``.) Only for n = 2 and ``h0_1 + h0_2 = 1`` nothing helps: all rows are then
multiples of accepting both.
"""

import numpy as np

from developer.reveal.decode import lstsq
from developer.reveal.decode.decoder import DecoderInputs
from developer.reveal.strategies.strategy import Reveal, StrategyInputs, everyone
from fairwall.arrays import Floats

NARROWEST = 1e-3
"""The smallest |1 - 2 h| of a score h that is changed."""


def counts(n: int) -> range:
    """Return the numbers of queries about n people that determine everyone: n - 1 and n."""
    return range(n - 1, n + 1)


def play(inputs: StrategyInputs) -> Reveal:
    """Solve for v; people with a positive entry are advantaged."""
    n = inputs.people
    if inputs.queries not in counts(n):
        raise ValueError(f"a linear system for {n} people takes {n - 1} or {n} queries, not {inputs.queries}")
    H = rows(inputs.base(), inputs.queries)
    gaps = inputs.auditor.gaps(H)
    # The sizes are not known here.
    v = (inputs.decode or lstsq.decode)(DecoderInputs(np.vstack([H, np.ones(n)]), np.append(gaps, 0), 0, 0))
    return everyone(v > 0)


def rows(base: Floats, m: int) -> Floats:
    """Return h0's scores with one person's flipped in each of m rows; (m, n) in [0, 1].

    A score too close to 1/2 to change is first rounded to 0 or 1. m is n, or n - 1 to leave one person unflipped.
    """
    scores = np.where(np.abs(1 - 2 * base) < NARROWEST, base >= 0.5, base)
    d = 1 - 2 * scores
    H = scores + np.diag(d)
    if m == base.size:
        return H
    factor = 2 - base.size + (1 / d).sum() * d
    return np.delete(H, np.argmax(np.abs(factor)), axis=0)
