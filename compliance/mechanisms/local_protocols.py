"""Encoding of each person's protected value by the protocols of local differential privacy, for training.

Their distributions, costs and likelihoods are public and stand in `fairwall.laws.local`; this module draws from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from compliance.noise.sampling import step_for
from compliance.noise.uniform_bits import Draw, bernoulli, seeded, system
from fairwall.arrays import Bools, Bytes, Floats, Ints
from fairwall.laws.local import (
    LOCAL_LAWS,
    Bits,
    EncodingDistribution,
    Flips,
    LocalLaw,
    LocalPrivacyError,
    Numbers,
    Subsets,
)

L = TypeVar("L", bound=EncodingDistribution)

# Entries encoded at a time: a quarter of a MiB of uniform numbers. Draws are taken in this order, so another size here
# is another release from the same seed.
_TOGETHER = 1 << 15


@dataclass(frozen=True)
class LocalProtocol(Generic[L]):
    """A local differential privacy protocol.

    `public`: its name and laws, which everybody knows. `sample`: maps a law, values in its domain, shape (n,), and
    randomness to the encodings, shape (n, k).
    """

    public: LocalLaw[L]
    sample: Callable[[L, Ints, Draw], NDArray[Any]]

    def sanitise(self, values: NDArray[Any], k: int, epsilon: float, draw: Draw) -> NDArray[Any]:
        """Return the sanitised encodings of one attribute of many people, each drawn independently.

        Shape (n, k), each entry 0 or 1; float64 numbers where the server thresholds. LocalPrivacyError for values
        outside the domain, a domain of less than two values, or an impossible epsilon. The text says nothing that
        depends on the values.

        `values`: the true values, shape (n,), integers in 0 .. k-1. Secret. `k`: number of possible values, at least 2.
        Public. `epsilon`: the protocol's parameter, above 0; each person's loss is ``public.loss(k, epsilon)``.
        """
        law = self.public.law(k, epsilon)
        return self.sample(law, in_domain(values, k), draw)


def in_domain(values: NDArray[Any], k: int) -> Ints:
    """Return values as int64; LocalPrivacyError if they are not one row of integers in 0 .. k-1."""
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise LocalPrivacyError("values to sanitise must be one row of integers")
    if values.size and (values.min() < 0 or values.max() >= k):
        raise LocalPrivacyError(f"values to sanitise must be in their domain, 0 .. {k - 1}")
    return values.astype(np.int64)


def blocks(n: int, k: int) -> Iterator[slice]:
    """Return slices that cut n rows of k entries into blocks that stay in the processor's cache."""
    step = max(_TOGETHER // k, 1)
    return (slice(first, min(first + step, n)) for first in range(0, n, step))


def sample_bits(law: Bits, values: Ints, draw: Draw) -> Bytes:
    """Return sampled encodings, shape (n, k), of values in the law's domain, shape (n,)."""
    encoded = np.empty((len(values), law.k), np.uint8)
    for rows in blocks(len(values), law.k):
        own = values[rows]
        block = encoded[rows]
        block[:] = bernoulli(law.extra, block.size, draw).reshape(block.shape)
        block[np.arange(len(own)), own] = ~bernoulli(law.missing, len(own), draw)
    return encoded


def codes(values: NDArray[Any], k: int, epsilon: float, draw: Draw) -> Ints:
    """Return sanitised values, shape (n,), in 0 .. k-1, instead of one-hot encodings.

    LocalPrivacyError as `LocalProtocol.sanitise`.
    """
    return _sample_codes(LOCAL_LAWS["grr"].law(k, epsilon), in_domain(values, k), draw)


def _sample_codes(law: Subsets, values: Ints, draw: Draw) -> Ints:
    sanitised = np.empty_like(values)
    for rows in blocks(len(values), 1):
        own = values[rows]
        # 1 .. k-1 places further on, round the circle. Drawn for everybody, so that draws do not depend on who moves.
        further = (draw(len(own)) * (law.k - 1)).astype(np.int64) + 1
        sanitised[rows] = (own + further * bernoulli(law.missing, len(own), draw)) % law.k
    return sanitised


def _sample_response(law: Subsets, values: Ints, draw: Draw) -> Bytes:
    encoded = np.zeros((len(values), law.k), np.uint8)
    encoded[np.arange(len(values)), _sample_codes(law, values, draw)] = 1
    return encoded


GRR = LocalProtocol(LOCAL_LAWS["grr"], _sample_response)


OUE = LocalProtocol(LOCAL_LAWS["oue"], sample_bits)


RAPPOR = LocalProtocol(LOCAL_LAWS["rappor"], sample_bits)


BLH = LocalProtocol(LOCAL_LAWS["blh"], sample_bits)


OLH = LocalProtocol(LOCAL_LAWS["olh"], sample_bits)


# How many numbers of each person are in use at a time, the subset aside.
_NUMBERS = 4


def _sample_subsets(law: Subsets, values: Ints, draw: Draw) -> Bytes:
    encoded = np.empty((len(values), law.k), np.uint8)
    for rows in blocks(len(values), _NUMBERS):
        encoded[rows] = _sample_block(law, values[rows], draw).T
    return encoded


def _sample_block(law: Subsets, true_values: Ints, draw: Draw) -> Bools:
    """Return subsets, shape (k, n), each uniform among all subsets of its size.

    Selection sampling (Knuth, volume 2, Algorithm S), everybody at the same value at a time: each remaining value is
    chosen with probability (number still to be chosen) / (number remaining).
    """
    chosen = np.empty((law.k, len(true_values)), np.bool_)
    own_in = ~bernoulli(law.missing, len(true_values), draw)
    wanted = (law.size - own_in).astype(np.float64)
    left = np.full(len(true_values), law.k - 1.0)
    for value, here in enumerate(chosen):
        is_own = true_values == value
        np.less(draw(len(true_values)) * left, wanted, out=here)
        here &= ~is_own
        wanted -= here
        left -= ~is_own
        here |= is_own & own_in
    return chosen


SS = LocalProtocol(LOCAL_LAWS["ss"], _sample_subsets)


def _sample_numbers(law: Numbers, values: Ints, draw: Draw) -> Floats:
    """Sample numbers on a public grid, which has 0 and 1, so that their last bits reveal nothing of the value.

    Rounding is post-processing, and in the tails, where the loss is epsilon, it changes no ratio.
    """
    scale = 2 / law.epsilon
    step = step_for(scale)
    encoded = np.empty((len(values), law.k))
    for rows in blocks(len(values), law.k):
        own = values[rows]
        block = encoded[rows]
        block[:] = np.rint(_laplace(block.size, draw) * (scale / step)).reshape(block.shape) * step
        block[np.arange(len(own)), own] += 1
        block += 0.0  # -0.0 and 0.0 are one number
    return encoded


def _laplace(size: int, draw: Draw) -> Floats:
    # One more bit for the sign, and 52 more for a tail that has no gaps where noise is ever seen.
    more = 2 * draw(size)
    positive = more >= 1
    uniform = draw(size) + (more - positive + 2.0**-53) * 2.0**-53
    noise: Floats = np.log(uniform) * (1 - 2.0 * positive)
    return noise


THE = LocalProtocol(LOCAL_LAWS["the"], sample_bits)
THE_SERVER = LocalProtocol(LOCAL_LAWS["the-server"], _sample_numbers)


def _sample_fair(law: Flips, values: Ints, draw: Draw) -> Bytes:
    encoded = np.empty((len(values), 2), np.uint8)
    for rows in blocks(len(values), 2):
        own = values[rows]
        # Both are drawn for everybody, so that draws do not depend on the values.
        turned = np.choose(own, [bernoulli(missing, len(own), draw) for missing in law.missing])
        encoded[rows, 1] = own ^ turned
    encoded[:, 0] = 1 - encoded[:, 1]
    return encoded


FAIR_BINARY_0 = LocalProtocol(LOCAL_LAWS["fair-0"], _sample_fair)
FAIR_BINARY_1 = LocalProtocol(LOCAL_LAWS["fair-1"], _sample_fair)


__all__ = ["PROTOCOLS", "Draw", "LocalProtocol", "seeded", "system"]

_ALL: tuple[LocalProtocol[Any], ...] = (GRR, BLH, OLH, RAPPOR, OUE, SS, THE, THE_SERVER, FAIR_BINARY_0, FAIR_BINARY_1)

PROTOCOLS: dict[str, LocalProtocol[Any]] = {protocol.public.name: protocol for protocol in _ALL}
"""Every protocol by its name."""
