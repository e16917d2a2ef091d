"""The equalized-odds penalty of fair fine-tuning, and its slope.

For label y the surrogate of the gap is ``g_y = mean of p over (y, a=1) - mean of p over (y, a=0)`` within a batch, p
being the score: the rate of positive decisions with the threshold smoothed away. The penalty is

    strength * max over y of |g_y|        (no weights; the paper's Delta_EO, smoothed)
    strength * sum over y of w_y |g_y|    (with weights)

and for several attributes the sum of their penalties. With p = sigmoid(z) its slope in a row's logit z is

    dP/dz = strength * w_y * sign(g_y) * (+1 or -1) / (rows of the cell) * p (1 - p),

where without weights w_y is 1 for the label of the larger gap and 0 for the other. A label that a batch lacks in one of
the groups has no gap, and adds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairwall.arrays import Bytes, Floats
from fairwall.learning.ensemble import Ensemble

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, eq=False)
class EqualizedOdds:
    """The equalized-odds penalty's strength, groups and weights.

    Strength 1 weighs a gap of 1 like one nat of cross-entropy. Groups are (attributes, rows of the table), each 0 or 1.
    Weights are of the gaps at label 0 and at label 1; None penalises the larger gap alone.
    """

    strength: float
    groups: Bytes
    weights: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """A penalty that is a sum over rows: the mean over the rows of ``weight * score``, with weights fixed beforehand.

    The slope in a row's logit is ``weight * p (1 - p)``, whatever else is in the batch. So private training can clip
    the penalty with the loss, unlike a gap within a batch, which is no sum over rows.

    Attributes
    ----------
    weigh : returns the weights, (models, rows of the table), for the current models, and their places among all that
        are trained. Weights made from people's data leak, which their maker has to account for.
    every : steps from one weighing to the next; the first is before the first step.
    """

    weigh: Callable[[Ensemble, Sequence[int]], Floats]
    every: int

    def __post_init__(self) -> None:
        if self.every < 1:
            raise ValueError("rows are weighed every so many steps, at least 1")


def slope(penalty: EqualizedOdds, scores: Tensor, labels: Tensor, groups: Tensor, present: Tensor) -> Tensor:
    """Return the penalty's slope in each row's logit: all are of shape (models, width), groups (attributes, ...)."""
    total = scores.new_zeros(scores.shape)
    for group in groups:
        signs, gaps = [], []
        for label in (0.0, 1.0):
            stratum = (labels == label) * present
            ones, zeros = stratum * group, stratum * (1 - group)
            count1, count0 = ones.sum(1, keepdim=True), zeros.sum(1, keepdim=True)
            both = (count1 > 0) & (count0 > 0)
            # (models, width): +1 over the cell's size in one group, -1 over it in the other, 0 elsewhere.
            sign = (ones / count1.clamp(min=1) - zeros / count0.clamp(min=1)) * both
            signs.append(sign)
            gaps.append((scores * sign).sum(1, keepdim=True))
        if penalty.weights is None:
            larger = (gaps[1].abs() > gaps[0].abs()).to(scores.dtype)
            weights = (1 - larger, larger)
        else:
            weights = (scores.new_tensor(penalty.weights[0]), scores.new_tensor(penalty.weights[1]))
        for sign, gap, weight in zip(signs, gaps, weights, strict=True):
            total += weight * gap.sign() * sign
    return penalty.strength * total * scores * (1 - scores)
