"""Queries about one person (Hamman, Chen, Dutta, FAccT 2023, Examples 1 and 2)."""

import numpy as np

from developer.reveal.strategies.sizes import alone
from developer.reveal.strategies.strategy import Reveal, StrategyInputs, aimed


def play(inputs: StrategyInputs) -> Reveal:
    """Read the target's attribute off the sign of one gap.

    A model that accepts the target alone has the gap ``1/N1`` if the target is advantaged and ``-1/N0`` if not.
    """
    (gap,) = inputs.auditor.gaps(alone(inputs.people, inputs.target)[None])
    return aimed(inputs, gap > 0)


def play_pair(inputs: StrategyInputs) -> Reveal:
    """Read the target's attribute off the sign of the difference of two gaps, of realistic models.

    h1 is the base model's decision and h2 the same but for the target, so that

        SP_2 - SP_1 = (h2 - h1)(x_target) v_target,

    the paper's ``1/N1`` or ``-1/N0`` where h1 rejects the target, and minus that where h1 accepts it.
    """
    first = (inputs.base() >= 0.5).astype(np.float64)
    second = first.copy()
    second[inputs.target] = 1 - first[inputs.target]
    before, after = inputs.auditor.gaps(np.stack([first, second]))
    return aimed(inputs, (after - before) * (second - first)[inputs.target] > 0)
