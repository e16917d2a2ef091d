r"""What fair training is told about the groups, and the penalty that it makes of it.

Demographic parity asks for the same rate of positive decisions in both groups ([SD], equation 14). With the threshold
smoothed away the gap is g = mean of p over group 1 - mean of p over group 0, and the penalty lambda g^2 / 2. Its slope
in the model's parameters, at the gap g_t that is known when the epoch t begins, is that of

    mean over rows of w_i p_i,    w_i = lambda g_t (a_i / s_1 - (1 - a_i) / s_0),

s_a being the groups' shares of the rows. With g_t and s_a known beforehand that is a sum over rows, which private
training can clip row by row; it is no such sum where the gap is the batch's own. Without a squared gap, lambda |g|,
only the sign of g_t would count, and a gap near 0 would be pushed to and fro by noise.

`Groups` is all that training sees of the protected attribute. Where the developer holds it, `held` makes one of it.
Otherwise ``rates`` asks whoever holds it, who adds the noise and charges for it, and ``membership`` is what the
developer makes of its features, such as the linear projection of a on them from the groups' noisy means.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairwall.errors import UserError

SENSITIVITY = math.sqrt(1.25)
"""l2 sensitivity of (n_a, sum of p - 1/2 over group a) for both a: a record adds 1, and 1/2 at most, to one group's."""


@dataclass(frozen=True)
class GroupRates:
    """What one asking tells; entry 0 is the disadvantaged group, entry 1 the advantaged one.

    Attributes
    ----------
    share : of the rows, each above 0.
    rate : the mean score, in [0, 1].
    """

    share: tuple[float, float]
    rate: tuple[float, float]

    @property
    def gap(self) -> float:
        """Group 1's rate less group 0's."""
        return self.rate[1] - self.rate[0]


@dataclass(frozen=True, eq=False)
class Groups:
    """The protected attribute, as far as training may see it.

    Attributes
    ----------
    membership : (n,), in [0, 1]: how far a row counts as the advantaged group's.
    rates : tells the groups' rates of the rows' scores, shape (n,).
    cost : what one asking costs the developer's own budget: the l2 sensitivity over the standard deviation of Gaussian
        noise; 0 where others charge for it, or where nothing is promised.
    """

    membership: NDArray[np.float64]
    rates: Callable[[NDArray[np.float64]], GroupRates]
    cost: float = 0.0


def held(protected: NDArray[np.uint8], multiplier: float, rng: np.random.Generator) -> Groups:
    """Tell the groups' rates oneself, with Gaussian noise: the developer holds the protected attribute.

    Parameters
    ----------
    protected : ndarray of 0 or 1, shape (n,)
    multiplier : float
        The noise's standard deviation over the sensitivity, at least 0; 0 for exact rates.
    rng : Generator

    Raises
    ------
    UserError
        If a group has no row.
    """
    require_both(protected)
    of_group = np.stack([protected == 0, protected == 1]).astype(np.float64)

    def rates(scores: NDArray[np.float64]) -> GroupRates:
        told = np.stack([of_group.sum(1), of_group @ (scores - 0.5)])
        told += multiplier * SENSITIVITY * rng.standard_normal(told.shape)
        sizes = np.maximum(told[0], 1)
        share, rate = sizes / sizes.sum(), np.clip(0.5 + told[1] / sizes, 0, 1)
        return GroupRates((float(share[0]), float(share[1])), (float(rate[0]), float(rate[1])))

    return Groups(protected.astype(np.float64), rates, 1 / multiplier if multiplier > 0 else 0.0)


def require_both(protected: NDArray[np.uint8]) -> None:
    """Refuse people of one group.

    Raises
    ------
    UserError
        If a group has no row.
    """
    for group, name in ((0, "disadvantaged"), (1, "advantaged")):
        if not (protected == group).any():
            raise UserError(f"no row is in the {name} group: there is no gap between groups to close")


def row_weights(pull: float, membership: NDArray[np.float64], share: tuple[float, float]) -> NDArray[np.float64]:
    """Compute every row's weight w_i in the penalty, shape (n,).

    Parameters
    ----------
    pull : lambda times the gap.
    membership : (n,), in [0, 1].
    share : the groups' shares of the rows, each above 0.
    """
    return pull * (membership / share[1] - (1 - membership) / share[0])
