"""The fairest release of one of two values (Ghoukasian, Asoodeh 2025): each value flips with its own probability."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compliance.mechanisms.local.protocol import LocalProtocol, blocks
from compliance.noise.uniforms import Draw, bernoulli
from fairwall.laws.local import LOCAL_LAWS, Flips


def _sample(law: Flips, values: NDArray[np.int64], draw: Draw) -> NDArray[np.uint8]:
    encoded = np.empty((len(values), 2), np.uint8)
    for rows in blocks(len(values), 2):
        own = values[rows]
        # Both are drawn for everybody, so that draws do not depend on the values.
        turned = np.choose(own, [bernoulli(missing, len(own), draw) for missing in law.missing])
        encoded[rows, 1] = own ^ turned
    encoded[:, 0] = 1 - encoded[:, 1]
    return encoded


FAIR_BINARY_0 = LocalProtocol(LOCAL_LAWS["fair-0"], _sample)
FAIR_BINARY_1 = LocalProtocol(LOCAL_LAWS["fair-1"], _sample)
