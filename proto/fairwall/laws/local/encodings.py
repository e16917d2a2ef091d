"""Distributions of one person's encoding, given their value: the families that cover all protocols.

A value v of 0 .. k-1 is released as k zeros and ones (or, for `Numbers`, k real numbers). The seven protocols treat
the values alike, so a distribution needs no table: only those of the entry at v and of the other entries. `Flips` is
for two values that are not treated alike.

**The likelihood of a value.** For `Subsets` and `Bits`, P(z | v) depends on v through z_v alone, up to a factor that is
the same for all v. So log P(z | v) = weight z_v + a constant, and the weight is the log-ratio of "v is in" to "v is
not". It is also the privacy loss: two values' log-probabilities of one output differ by the weight at most, and do
differ by it where one of them is in and the other is not, which some output has for every pair.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Bools, Bytes, Floats

Kind = Literal["subset", "bits", "numbers", "flips"]

ENUMERATED_MAX = 12
"""Largest domain whose outputs are listed."""


class EncodingDistribution(Protocol):
    """The distribution of one person's encoding."""

    @property
    def kind(self) -> Kind:
        """The family of distributions."""

    @property
    def k(self) -> int:
        """The number of values."""

    @property
    def inconsistent(self) -> float:
        """The probability that an encoding says none or several values; independent of the true value."""

    def probabilities(self) -> tuple[NDArray[Any], Floats]:
        """Return all possible outputs, shape (outputs, k), and P(output | value), same shape.

        Columns of the second sum to 1. ValueError if k is above `ENUMERATED_MAX`.
        """

    def log_likelihood(self, encoded: NDArray[Any]) -> Floats:
        """Return log P(encoded row | value), up to a constant for each row; both have the shape (n, k)."""

    def consistent(self, encoded: NDArray[Any]) -> Bools:
        """Return a mask of the rows that say exactly one value, shape (n,)."""


@dataclass(frozen=True)
class Subsets:
    """A subset of `size` values: the true one is in with probability 1 - `missing`, the rest are drawn uniformly.

    There are at least 2 values, k, and 1 .. k-1 in a subset, omega; the probability is above 0.
    """

    k: int
    size: int
    missing: float
    kind: Literal["subset"] = "subset"

    @property
    def weight(self) -> float:
        """Log-ratio P(z | v) / P(z | v') for v in and v' not in z.

        The two are (1 - missing) / C(k-1, size-1) and missing / C(k-1, size), and the ratio of the binomial
        coefficients is (k - size) / size.
        """
        return _logit(self.missing) + math.log((self.k - self.size) / self.size)

    @property
    def inconsistent(self) -> float:
        """See `EncodingDistribution.inconsistent`: 0 or 1, as all subsets have one size."""
        return float(self.size != 1)

    def probabilities(self) -> tuple[Bytes, Floats]:
        """See `EncodingDistribution.probabilities`."""
        _require_small(self.k)
        chosen = np.array(list(itertools.combinations(range(self.k), self.size)))
        outputs = np.zeros((len(chosen), self.k), np.uint8)
        np.put_along_axis(outputs, chosen, 1, axis=1)
        inside = (1 - self.missing) / math.comb(self.k - 1, self.size - 1)
        outside = self.missing / math.comb(self.k - 1, self.size)
        return outputs, np.where(outputs == 1, inside, outside)

    def log_likelihood(self, encoded: NDArray[Any]) -> Floats:
        """See `EncodingDistribution.log_likelihood`."""
        return self.weight * encoded.astype(np.float64)

    def consistent(self, encoded: NDArray[Any]) -> Bools:
        """See `EncodingDistribution.consistent`."""
        return _one(encoded == 1)


@dataclass(frozen=True)
class Bits:
    """k independent bits: the true value's is 0 with probability `missing`, another's is 1 with probability `extra`.

    In the papers' letters 1 - `missing` is p and `extra` is q: both are error probabilities, so that float64 tells them
    from 0 at any epsilon. There are at least 2 values, and both probabilities are above 0 and below 1.
    """

    k: int
    missing: float
    extra: float
    kind: Literal["bits"] = "bits"

    @property
    def weight(self) -> float:
        """Log-ratio P(z | v) / P(z | v') for z_v = 1 and z_v' = 0.

        All other bits cancel. What is left is p (1-q) over (1-p) q.
        """
        return _logit(self.missing) + _logit(self.extra)

    @property
    def inconsistent(self) -> float:
        """See `EncodingDistribution.inconsistent`: 1 less the probability that exactly one bit is 1."""
        none = (1 - self.extra) ** (self.k - 2)
        right = (1 - self.missing) * none * (1 - self.extra)
        wrong = self.missing * (self.k - 1) * self.extra * none
        return max(1 - right - wrong, 0.0)

    def probabilities(self) -> tuple[Bytes, Floats]:
        """See `EncodingDistribution.probabilities`."""
        _require_small(self.k)
        outputs = np.array(list(itertools.product((0, 1), repeat=self.k)), np.uint8)
        own = np.array([self.missing, 1 - self.missing])
        other = np.array([1 - self.extra, self.extra])
        return outputs, _products(outputs, own, other)

    def log_likelihood(self, encoded: NDArray[Any]) -> Floats:
        """See `EncodingDistribution.log_likelihood`."""
        return self.weight * encoded.astype(np.float64)

    def consistent(self, encoded: NDArray[Any]) -> Bools:
        """See `EncodingDistribution.consistent`."""
        return _one(encoded == 1)


@dataclass(frozen=True)
class Numbers:
    """k independent numbers: the true value's is 1, another's 0, plus Laplace noise of scale 2/epsilon on each.

    The receiver turns them into bits, those above a threshold in (0, 1). There are at least 2 values.
    """

    k: int
    epsilon: float
    threshold: float
    kind: Literal["numbers"] = "numbers"

    @property
    def bits(self) -> Bits:
        """The distribution of the thresholded bits: a Laplace tail each."""
        missing = 0.5 * math.exp(-(1 - self.threshold) * self.epsilon / 2)
        return Bits(self.k, missing, 0.5 * math.exp(-self.threshold * self.epsilon / 2))

    @property
    def inconsistent(self) -> float:
        """See `EncodingDistribution.inconsistent`, for the numbers above the threshold."""
        return self.bits.inconsistent

    def probabilities(self) -> tuple[Floats, Floats]:
        """Return the cells into which 0 and 1 cut the space of numbers, by one point each.

        Within an outer cell the ratio of two values' densities is constant, so that the cells show the whole privacy
        loss.
        """
        _require_small(self.k)
        cells = np.array(list(itertools.product((0, 1, 2), repeat=self.k)))
        beyond = 0.5 * math.exp(-self.epsilon / 2)
        around_0 = np.array([0.5, 0.5 - beyond, beyond])
        return np.array([-1.0, 0.5, 2.0])[cells], _products(cells, around_0[::-1], around_0)

    def log_likelihood(self, encoded: NDArray[Any]) -> Floats:
        """Return |z_v| - |z_v - 1| times epsilon/2, since the other values' densities cancel."""
        likelihood: Floats = (np.abs(encoded) - np.abs(encoded - 1.0)) * (self.epsilon / 2)
        return likelihood

    def thresholded(self, encoded: Floats) -> Bytes:
        """Return the bits, shape (n, k)."""
        return (encoded > self.threshold).astype(np.uint8)

    def consistent(self, encoded: NDArray[Any]) -> Bools:
        """See `EncodingDistribution.consistent`: exactly one number above the threshold."""
        return _one(encoded > self.threshold)


@dataclass(frozen=True)
class Flips:
    """One of two values: the true v, or with probability ``missing[v]``, in (0, 1), the other."""

    missing: tuple[float, float]
    k: int = field(default=2, init=False)
    inconsistent: float = field(default=0.0, init=False)
    kind: Literal["flips"] = "flips"

    def probabilities(self) -> tuple[Bytes, Floats]:
        """See `EncodingDistribution.probabilities`."""
        return np.eye(2, dtype=np.uint8), np.exp(self._logs)

    def log_likelihood(self, encoded: NDArray[Any]) -> Floats:
        """See `EncodingDistribution.log_likelihood`."""
        return self._logs[encoded[:, 1].astype(np.intp)]

    def consistent(self, encoded: NDArray[Any]) -> Bools:
        """See `EncodingDistribution.consistent`."""
        return _one(encoded == 1)

    @property
    def _logs(self) -> Floats:
        """Log P(released | true), a row for each released value."""
        zero, one = self.missing
        return np.array([[math.log1p(-zero), math.log(one)], [math.log(zero), math.log1p(-one)]])


def enumerated_loss(probabilities: Floats) -> float:
    """Return the privacy loss of fully listed outputs: the largest log-ratio of two columns of P(output | value).

    The table has the shape (outputs, k). Infinite if some value rules out an output that another allows.
    """
    possible = probabilities[probabilities.max(axis=1) > 0]
    with np.errstate(divide="ignore"):
        logs = np.log(possible)
    return float((logs.max(axis=1) - logs.min(axis=1)).max())


def _logit(missing: float) -> float:
    """Return ln((1 - x) / x)."""
    return math.log1p(-missing) - math.log(missing)


def _one(bits: Bools) -> Bools:
    one: Bools = np.count_nonzero(bits, axis=1) == 1
    return one


def _products(outputs: NDArray[Any], true_entry: Floats, other: Floats) -> Floats:
    """Return the products of the entries' probabilities, of the true value's entry and of every other."""
    k = outputs.shape[1]
    columns = [np.where(np.arange(k) == value, true_entry[outputs], other[outputs]).prod(axis=1) for value in range(k)]
    return np.stack(columns, axis=1)


def _require_small(k: int) -> None:
    if k > ENUMERATED_MAX:
        raise ValueError(f"a domain of {k} values has too many outputs to list, {ENUMERATED_MAX} is the most")
