r"""Which decisions to turn so that an audited gap falls, from how probable it is of each row that it is disadvantaged.

Let q_i be that probability, N0 = sum q_i and N1 = n - N0 what sizes are taken for. Accepting a rejected row lowers the
gap by q/N0 - (1-q)/N1 in expectation, and rejecting an accepted one by the opposite. The f largest of these are the
best f patches where N0 and N1 are right: each patch moves a sum of its own.
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
"""The attacks, and by what each patches."""

STEP = 0.25
"""To multiples of this log-odds are rounded. Of all rows of a table that are then alike the attack knows the same, so
that how likely they are to be disadvantaged is known exactly to who scores it."""


def hints(features: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Say by a public predictor how likely people are disadvantaged: (rows,), log-odds in multiples of `STEP`.

    ``features`` is (rows, d), ``weights`` (d + 1,), the intercept last.
    """
    odds: NDArray[np.float64] = np.rint((features @ weights[:-1] + weights[-1]) / STEP) * STEP
    return odds


def lowering(
    decisions: NDArray[np.uint8], probable: NDArray[np.float64], flips: int, rng: np.random.Generator
) -> tuple[NDArray[np.intp], int]:
    """Choose the patches that lower the gap most, at most so many, and how many of them bring it nearest to 0.

    Parameters
    ----------
    decisions, probable : (rows,), whom the model accepts, and how probable it is that each is disadvantaged.
    rng : chooses among rows that are alike.
    """
    n0 = float(np.clip(probable.sum(), 1, len(probable) - 1))
    share0, share1 = probable / n0, (1 - probable) / (len(probable) - n0)
    fall = np.where(decisions == 0, 1.0, -1.0) * (share0 - share1)
    chosen = np.lexsort((rng.random(len(fall)), -fall))[:flips]
    gap = float((decisions * (share1 - share0)).sum())
    left = gap - np.concatenate([[0.0], np.cumsum(fall[chosen])])
    return chosen, int(np.abs(left).argmin())
