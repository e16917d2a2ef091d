"""The distribution of one stratum's released gap under randomised response, for decisions of 0 and 1.

Each person's group is turned over with probability p. Of the S1 advantaged people with a decision of 1 and the S0
disadvantaged ones, V = S1 - Bin(S1, p) + Bin(S0, p) are advantaged afterwards, and likewise U of those with a decision
of 0, independently. The released gap is a function of V and U (`fairwall.laws.response.response_estimates`), so its
distribution is a sum over pairs, with very many values of a count grouped into blocks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fairwall.laws.response import response_estimates
from sim.planning.worst import Array

_DEVIATIONS = 7.0
_BLOCKS = 100
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class RespondedGap:
    """The distribution of a stratum's released gap; ``probability`` is that of turning one person's group over."""

    n0: int
    n1: int
    probability: float
    numbers: int = 1

    def inside(self, low: Array, high: Array, sum0: Array, sum1: Array) -> Array:
        """Return P(low <= released gap <= high), ends included; see `sim.planning.counted.CountedGap.inside`."""
        found = np.empty(len(sum0))
        for i, (zero, one) in enumerate(zip(sum0.tolist(), sum1.tolist(), strict=True)):
            gaps, up_to = _law(self, zero, one)
            first = np.searchsorted(gaps, low[i] - _TOLERANCE, side="left")
            last = np.searchsorted(gaps, high[i] + _TOLERANCE, side="right")
            found[i] = up_to[last] - up_to[min(first, last)]
        return found

    def draw(self, sum0: float, sum1: float, generator: np.random.Generator, size: int) -> Array:
        """Draw released gaps, shape (size,)."""
        others = self.n1 - sum1, self.n0 - sum0
        out1, in1, out0, in0 = (
            generator.binomial(int(many), self.probability, size).astype(np.float64) for many in (sum1, sum0, *others)
        )
        return self.released(sum1 - out1 + in1, others[0] - out0 + in0, sum0 + sum1)

    def released(self, v: Array, u: Array, total: float) -> Array:
        """Return the gap released if v advantaged people have a 1 and u a 0, in the shape of v and u."""
        n = self.n0 + self.n1
        n1, sum1 = response_estimates(v + u, v, n, np.asarray(total), self.probability)
        return np.asarray(np.clip(sum1 / n1 - (total - sum1) / (n - n1), -1, 1))


@lru_cache(maxsize=256)
def _law(gap: RespondedGap, zero: float, one: float) -> tuple[Array, Array]:
    """Return the sorted released gaps, and the probability of all before each and of all, shape (gaps + 1,)."""
    v, v_chances = _kept(one, zero, gap.probability)
    u, u_chances = _kept(gap.n1 - one, gap.n0 - zero, gap.probability)
    gaps = gap.released(np.repeat(v, u.size), np.tile(u, v.size), zero + one)
    order = np.argsort(gaps)
    return gaps[order], np.concatenate([[0.0], np.cumsum(np.outer(v_chances, u_chances).ravel()[order])])


def _kept(inside: float, outside: float, p: float) -> tuple[Array, Array]:
    """Return the law of inside - Bin(inside, p) + Bin(outside, p): values and probabilities, shape (values,) each."""
    out, out_chances = _binomial(int(inside), p)
    in_, in_chances = _binomial(int(outside), p)
    chances = np.convolve(out_chances[::-1], in_chances)
    values = np.arange(len(chances)) + inside - out[-1] + in_[0]
    if len(values) > _BLOCKS:
        starts = np.unique(np.rint(np.linspace(0, len(values), _BLOCKS + 1)[:-1]).astype(np.int64))
        sums = np.add.reduceat(chances, starts)
        values = np.add.reduceat(values * chances, starts) / np.where(sums > 0, sums, 1.0)
        chances = sums
    return values, chances / chances.sum()


def _binomial(n: int, p: float) -> tuple[Array, Array]:
    """Return the values of Bin(n, p) with a non-negligible probability, and their probabilities."""
    from scipy.special import gammaln, xlog1py, xlogy

    reach = _DEVIATIONS * math.sqrt(n * p * (1 - p)) + 20
    k = np.arange(max(0, math.floor(n * p - reach)), min(n, math.ceil(n * p + reach)) + 1.0)
    log = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) + xlogy(k, p) + xlog1py(n - k, -p)
    return k, np.exp(log)
