"""Generalized randomized response (Kairouz, Bonawitz, Ramage 2016): the value itself, or another one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from compliance.mechanisms.local.protocol import LocalProtocol, blocks, in_domain
from compliance.noise.uniforms import Draw, bernoulli
from fairwall.laws.local import LOCAL_LAWS, Subsets


def codes(values: NDArray[Any], k: int, epsilon: float, draw: Draw) -> NDArray[np.int64]:
    """Return sanitised values, shape (n,), in 0 .. k-1, instead of one-hot encodings.

    LocalPrivacyError as `LocalProtocol.sanitise`.
    """
    return _sample_codes(LOCAL_LAWS["grr"].law(k, epsilon), in_domain(values, k), draw)


def _sample_codes(law: Subsets, values: NDArray[np.int64], draw: Draw) -> NDArray[np.int64]:
    sanitised = np.empty_like(values)
    for rows in blocks(len(values), 1):
        own = values[rows]
        # 1 .. k-1 places further on, round the circle. Drawn for everybody, so that draws do not depend on who moves.
        further = (draw(len(own)) * (law.k - 1)).astype(np.int64) + 1
        sanitised[rows] = (own + further * bernoulli(law.missing, len(own), draw)) % law.k
    return sanitised


def _sample(law: Subsets, values: NDArray[np.int64], draw: Draw) -> NDArray[np.uint8]:
    encoded = np.zeros((len(values), law.k), np.uint8)
    encoded[np.arange(len(values)), _sample_codes(law, values, draw)] = 1
    return encoded


GRR = LocalProtocol(LOCAL_LAWS["grr"], _sample)
