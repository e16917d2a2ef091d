"""What a protocol is to compliance: a public law, and how to sample from it for many people at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from compliance.noise.uniforms import Draw
from fairwall.laws.local import Law, LocalLaw, LocalPrivacyError

L = TypeVar("L", bound=Law)

# Entries encoded at a time: a quarter of a MiB of uniform numbers. Draws are taken in this order, so another size here
# is another release from the same seed.
_TOGETHER = 1 << 15


@dataclass(frozen=True)
class LocalProtocol(Generic[L]):
    """A local differential privacy protocol.

    Parameters
    ----------
    public : its name and laws, which everybody knows.
    sample : from a law, values in its domain, shape (n,), and randomness to the encodings, shape (n, k).
    """

    public: LocalLaw[L]
    sample: Callable[[L, NDArray[np.int64], Draw], NDArray[Any]]

    def sanitise(self, values: NDArray[Any], k: int, epsilon: float, draw: Draw) -> NDArray[Any]:
        """Sanitise one attribute of many people, each of them independently.

        LocalPrivacyError for values outside the domain, a domain of less than two values, or an impossible epsilon. The
        text says nothing that depends on the values.

        Parameters
        ----------
        values : ndarray
            The true values, shape (n,), integers in 0 .. k-1. Secret.
        k : how many values there are, at least 2. Public.
        epsilon : the protocol's parameter, above 0; what the release costs each person is ``public.loss(k, epsilon)``.
        draw : the randomness.

        Returns
        -------
        NDArray[np.uint8]
            The encodings, shape (n, k), each entry 0 or 1; numbers, NDArray[np.float64], where the server thresholds.
        """
        law = self.public.law(k, epsilon)
        return self.sample(law, in_domain(values, k), draw)


def in_domain(values: NDArray[Any], k: int) -> NDArray[np.int64]:
    """Return values as integers, or refuse them.

    LocalPrivacyError if they are not one row of integers in 0 .. k-1.
    """
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise LocalPrivacyError("values to sanitise must be one row of integers")
    if values.size and (values.min() < 0 or values.max() >= k):
        raise LocalPrivacyError(f"values to sanitise must be in their domain, 0 .. {k - 1}")
    return values.astype(np.int64)


def blocks(n: int, k: int) -> Iterator[slice]:
    """Cut n rows of k entries into blocks that stay in the processor's cache."""
    step = max(_TOGETHER // k, 1)
    return (slice(first, min(first + step, n)) for first in range(0, n, step))
