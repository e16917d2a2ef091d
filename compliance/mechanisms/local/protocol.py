"""A local protocol: a public law, and a sampler for many people at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from compliance.noise.uniforms import Draw
from fairwall.laws.local import EncodingDistribution, LocalLaw, LocalPrivacyError

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
    sample: Callable[[L, NDArray[np.int64], Draw], NDArray[Any]]

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


def in_domain(values: NDArray[Any], k: int) -> NDArray[np.int64]:
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
