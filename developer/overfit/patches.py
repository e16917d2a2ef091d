r"""The decisions to flip so that an audited gap falls, from each row's probability of being disadvantaged.

Let q_i be that probability, N0 = sum q_i and N1 = n - N0 the assumed sizes. Accepting a rejected row lowers the gap by
q/N0 - (1-q)/N1 in expectation, and rejecting an accepted one by the opposite. The f largest of these are the best f
patches where N0 and N1 are right, since each patch moves a sum of its own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

ATTACKS = {
    "features": "by what X says of A, by a public predictor; nothing is asked",
    "answers": "by what answers about models of the developer's choice say of A, X unseen",
    "both": "by answers and X together",
    "majority": "by the votes of sealed random models, each for whom its answer favours (Blum and Hardt, ICML 2015)",
}
"""The attacks, and the evidence that each patches by."""

STEP = 0.25
"""Log-odds are rounded to multiples of this, so that many rows of a table are equal to the attack, and the scorer knows
their exact frequency of disadvantage."""


def hints(features: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log-odds, (rows,), of being disadvantaged by public weights, (d + 1,), in multiples of `STEP`."""
    odds: NDArray[np.float64] = np.rint((features @ weights[:-1] + weights[-1]) / STEP) * STEP
    return odds


def lowering(
    decisions: NDArray[np.uint8], probable: NDArray[np.float64], flips: int, rng: np.random.Generator
) -> tuple[NDArray[np.intp], int]:
    """Return the patches that lower the gap most, at most `flips`, and how many of them bring it nearest to 0.

    `probable`, (rows,), is each row's probability of being disadvantaged; `rng` breaks ties.
    """
    n0 = float(np.clip(probable.sum(), 1, len(probable) - 1))
    share0, share1 = probable / n0, (1 - probable) / (len(probable) - n0)
    fall = np.where(decisions == 0, 1.0, -1.0) * (share0 - share1)
    chosen = np.lexsort((rng.random(len(fall)), -fall))[:flips]
    gap = float((decisions * (share1 - share0)).sum())
    left = gap - np.concatenate([[0.0], np.cumsum(fall[chosen])])
    return chosen, int(np.abs(left).argmin())
