r"""The group statistics of fair training, and the penalty computed from them.

Demographic parity asks for the same rate of positive decisions in both groups ([SD], equation 14). With the threshold
smoothed away the gap is g = mean of p over group 1 - mean of p over group 0, and the penalty lambda g^2 / 2. Its slope
in the model's parameters, at the gap g_t that is known when the epoch t begins, is that of

    mean over rows of w_i p_i,    w_i = lambda g_t (a_i / s_1 - (1 - a_i) / s_0),

s_a being the groups' shares of the rows. With g_t and s_a known beforehand that is a sum over rows, which private
training can clip row by row; with the batch's own gap it is not. Without the square, lambda |g|, only the sign of g_t
would count, and noise would push a gap near 0 to and fro.

`GroupAccess` is all that training sees of the protected attribute, and all of it comes from `GroupAdder`: each
group's sum of rows and size, with noise. A developer that holds the attribute adds them up itself. Otherwise
compliance does, draws the noise and charges for it, and rows are assigned to groups by their features (`told`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fairwall.arrays import Bytes, Floats
from fairwall.errors import UserError
from fairwall.learning.ensemble import unit

SENSITIVITY = math.sqrt(2)
"""l2 sensitivity of both groups' sums and sizes to one record: one group's change by a row of norm 1 at most, and 1."""

_FLAT = 1e-12


@dataclass(frozen=True, eq=False)
class GroupAdder:
    """Sums of rows by group.

    ask : maps rows (n, width), each of norm 1 at most, to (2, width + 1): the disadvantaged group's sum of rows and its
        size, then the advantaged one's.
    multiplier : the standard deviation of the Gaussian noise on every number, over `SENSITIVITY`; 0 for none.
    """

    ask: Callable[[Floats], Floats]
    multiplier: float

    @property
    def cost(self) -> float:
        """The privacy cost of one request: sensitivity over standard deviation; 0 where there is no noise."""
        return 1 / self.multiplier if self.multiplier > 0 else 0.0

    def means(self, rows: Floats) -> Floats:
        """Return the groups' mean rows, shape (2, width). A size of less than 1 counts as 1."""
        return means_of(self.ask(rows))

    def rates(self, scores: Floats) -> GroupRates:
        """Return the groups' shares and mean scores, for scores in [0, 1], shape (n,)."""
        # Around 1/2, so that a row is as long as it may be.
        told = self.ask(2 * scores[:, None] - 1)
        sizes = np.maximum(told[:, 1], 1)
        share, rate = sizes / sizes.sum(), np.clip(0.5 + told[:, 0] / sizes / 2, 0, 1)
        return GroupRates((float(share[0]), float(share[1])), (float(rate[0]), float(rate[1])))


@dataclass(frozen=True)
class GroupRates:
    """The groups' shares of the rows, above 0, and mean scores, in [0, 1]; entry 0 is the disadvantaged group."""

    share: tuple[float, float]
    rate: tuple[float, float]

    @property
    def gap(self) -> float:
        """Group 1's rate less group 0's."""
        return self.rate[1] - self.rate[0]


@dataclass(frozen=True, eq=False)
class GroupAccess:
    """The part of the protected attribute that training may see.

    membership : (n,), in [0, 1]: the degree to which a row counts as the advantaged group's.
    rates : returns the groups' rates of the rows' scores, (n,).
    cost : the privacy cost of one request for rates, see `GroupAdder.cost`; 0 without a guarantee.
    before : the privacy cost of the membership, likewise.
    """

    membership: Floats
    rates: Callable[[Floats], GroupRates]
    cost: float = 0.0
    before: float = 0.0

    def spent(self, tellings: int) -> float:
        """Return the cost of the membership and `tellings` requests for rates, as one Gaussian release."""
        return math.hypot(self.before, self.cost * math.sqrt(tellings))


def exact_sums(protected: Bytes, rows: Floats) -> Floats:
    """Return the sums of rows (n, width) by group, and their numbers: (2, width + 1), as `GroupAdder.ask` does."""
    of_group = np.stack([protected == 0, protected == 1]).astype(np.float64)
    return np.asarray(of_group @ np.column_stack([rows, np.ones(len(rows))]))


def means_of(sums: Floats) -> Floats:
    """Return the groups' mean rows, shape (2, width). A size of less than 1 counts as 1."""
    return np.asarray(sums[:, :-1] / np.maximum(sums[:, -1:], 1))


def held_sums(protected: Bytes, multiplier: float, rng: np.random.Generator) -> GroupAdder:
    """Return sums computed from the protected attribute, (n,), which the developer holds; multiplier 0 is exact."""
    require_both(protected)

    def ask(rows: Floats) -> Floats:
        told = exact_sums(protected, rows)
        return np.asarray(told + multiplier * SENSITIVITY * rng.standard_normal(told.shape))

    return GroupAdder(ask, multiplier)


def held(protected: Bytes, multiplier: float, rng: np.random.Generator) -> GroupAccess:
    """Return groups with exact memberships and noisy rates, from a protected attribute that the developer holds."""
    sums = held_sums(protected, multiplier, rng)
    return GroupAccess(protected.astype(np.float64), sums.rates, sums.cost)


def told(sums: GroupAdder, features: Floats) -> GroupAccess:
    r"""Return groups known only by another party's sums of features, (n, d): one request for membership, one per rates.

    With m_a the answered mean of the groups' rows x, scaled to norm 1 at most, and v = m_1 - m_0, a row counts as

        1/2 + (x - (m_0 + m_1) / 2) v / |v|^2,    clipped to [0, 1],

    of the advantaged group. Without noise and clipping its mean is 1 over that group and 0 over the other, so a pull
    along it moves the gap as far as one along the attribute itself. A row's membership depends on other rows only
    through v and m_a, so private training may clip row by row.
    """
    rows = unit(features)
    means = sums.means(rows)
    between = means[1] - means[0]
    length = max(float(between @ between), _FLAT)
    membership = np.clip(0.5 + (rows - means.mean(axis=0)) @ between / length, 0, 1)
    return GroupAccess(membership, sums.rates, sums.cost, sums.cost)


def require_both(protected: Bytes) -> None:
    """Raise `UserError` unless both groups have rows."""
    for group, name in ((0, "disadvantaged"), (1, "advantaged")):
        if not (protected == group).any():
            raise UserError(f"no row is in the {name} group: there is no gap between groups to close")


def row_weights(pull: float, membership: Floats, share: tuple[float, float]) -> Floats:
    """Return every row's weight w_i in the penalty, (n,); `pull` is lambda times the gap."""
    return pull * (membership / share[1] - (1 - membership) / share[0])
