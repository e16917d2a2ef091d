"""The four logistic regressions: LR, FairLR, PrivLR, PFLR* (fair and private).

**Fair.** The penalty is n mu g^2 / 2, g being the groups' gap of mean scores to first order around the regression w_t
that there is when the groups are asked about it:

    g = 4 (g_t + v_t (w - w_t)),    g_t = difference of the groups' means of p_i,    v_t = that of p_i (1 - p_i) r_i.

Around w_0 = 0 it is the difference of the groups' mean log-odds: the covariance of Zafar, Valera, Gomez Rodriguez and
Gummadi (AISTATS 2017), which Xu, Yuan and Wu (WWW Companion 2019) take for FairLR and PFLR*. Equal mean log-odds are
not equal rates: FairLR asks again. The penalty touches the rows through v_t and g_t alone. They are paid for if there
is a budget; with them given it is a quadratic like the ridge, without a part in any row's gradient.

**Private.** By objective perturbation (`developer.training.objective`): (epsilon, delta), or pure epsilon at delta 0.
That is another promise than the source's. Xu, Yuan and Wu use the functional mechanism (Zhang et al., VLDB 2012),
which puts Laplace noise on the coefficients of a polynomial near the loss, for pure epsilon; their PFLR* moreover
centres that noise so that the boundary turns towards fairness. Here the two parts of PFLR*, v_0 and the minimum, add up
by basic composition.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from developer.training.groups import GroupSums, exact_sums, means_of, require_both, told
from developer.training.model import Budget, People, Spent, Step, Trained
from developer.training.objective import ROW_NORM, exponential_vector, minimum, perturbation, ridge
from fairwall.errors import UserError
from fairwall.laws.gaussian import gaussian_multiplier
from fairwall.learning.ensemble import Ensemble, unit


@dataclass(frozen=True, eq=False)
class Between:
    """What a fair regression is told: the advantaged group's mean less the disadvantaged one's.

    Attributes
    ----------
    slope : of rows, shape (n, width), to (width,); of norm 1 at most with a budget, when it is asked once.
    gap : of scores, shape (n,); asked by a regression that asks more than once.
    """

    slope: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    gap: Callable[[NDArray[np.float64]], float]


@dataclass(frozen=True)
class Regression:
    """How a regression is trained.

    Attributes
    ----------
    strength : mu, the weight of the squared gap; 0 for none.
    tellings : how often the groups are asked, at least 1; with a budget once.
    ridge : Lambda, above 0, of a regression without a budget; with one it follows from ``kappa``.
    budget : of a private regression.
    kappa : in (0, 1), the share of the minimum's epsilon that the curvature may take: less is a larger ridge.
    """

    strength: float = 0.0
    tellings: int = 1
    ridge: float = 1.0
    budget: Budget | None = None
    kappa: float = 0.1

    def __post_init__(self) -> None:
        if not (self.strength >= 0 and self.ridge > 0 and 0 < self.kappa < 1):
            raise ValueError("mu is at least 0, Lambda above 0, and kappa in (0, 1)")
        if self.tellings < 1 or (self.budget is not None and self.tellings > 1):
            raise ValueError("groups are asked at least once, and once only where there is a budget")


def held_between(settings: Regression, protected: NDArray[np.uint8], seed: int) -> Between:
    """Tell the groups' difference oneself, with the noise that the budget has for it.

    Each group's sum of rows and its size are released at once; a record adds a row of norm 1 at most, and 1.
    """
    require_both(protected)
    budget, rng = settings.budget, np.random.default_rng([seed, 1])

    def slope(rows: NDArray[np.float64]) -> NDArray[np.float64]:
        told = exact_sums(protected, rows)
        if budget is not None:
            told += _noise(told.size, budget.statistics * budget.epsilon, budget.delta / 2, rng).reshape(told.shape)
        return _apart(means_of(told))

    return Between(slope, lambda scores: float(slope(scores[:, None])[0]))


def told_between(settings: Regression, sums: GroupSums, features: NDArray[np.float64]) -> Between:
    """Tell the groups' difference by what somebody else adds up.

    With a budget, the sums of rows are asked for. Without one, the membership that `developer.training.groups.told`
    makes of them tells the groups' means of rows, and only the gap is asked for again: the noise on a hundred columns
    would not be small on the rare ones, and the penalty would be met by moving weights that hardly any row feels.
    Memberships read all rows, which is no matter for whoever holds the features, but would be for a promise to records.
    """
    if settings.budget is not None:
        return Between(lambda rows: _apart(sums.means(rows)), lambda scores: sums.rates(scores).gap)
    membership = told(sums, features).membership
    weights = membership / max(membership.sum(), 1) - (1 - membership) / max((1 - membership).sum(), 1)
    return Between(lambda rows: np.asarray(weights @ rows), lambda scores: sums.rates(scores).gap)


def _apart(means: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(means[1] - means[0])


def _noise(size: int, epsilon: float, delta: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw noise for a vector that one record changes by `ROW_NORM` at most."""
    if delta > 0:
        return np.asarray(ROW_NORM * gaussian_multiplier(epsilon, delta) * rng.standard_normal(size))
    return ROW_NORM / epsilon * exponential_vector(size, rng)


def train(people: People, settings: Regression, seed: int, between: Between | None = None) -> Trained:
    """Train a regression.

    Parameters
    ----------
    seed : at least 0; a private regression is a function of it and of what it is given; the others draw nothing.
    between : what a fair regression is told. With a budget it costs the statistics' share of epsilon and half of delta
        at most, whoever tells it.
    """
    budget, fair = settings.budget, settings.strength > 0
    if fair and between is None:
        raise UserError("a fair regression needs the difference of the groups' means")
    features = people.features if budget is None else unit(people.features)
    rows = np.column_stack([features, np.ones(len(features))])
    n, dimension = rows.shape
    tilt, weight, spent = np.zeros(dimension), settings.ridge, None
    steps: tuple[Step, ...] = ()
    if budget is not None:
        epsilon, delta = budget.epsilon, budget.delta
        if fair:
            epsilon, delta = epsilon * (1 - budget.statistics), delta / 2
        kappa = settings.kappa * epsilon
        weight = ridge(kappa)
        tilt = perturbation(dimension, epsilon, delta, kappa, np.random.default_rng([seed, 0]))
        spent = Spent(budget.epsilon, budget.delta)
        steps = (Step("the perturbed minimum", epsilon, delta),)
        if fair:
            steps = (Step("the groups' mean rows", budget.statistics * budget.epsilon, budget.delta / 2), *steps)
    if fair and between is not None:
        found = np.zeros(dimension)
        for _ in range(settings.tellings):
            penalty = math.sqrt(n * settings.strength)
            across, beyond = _gap(rows, found, between)
            found = minimum(rows, people.labels, weight, tilt, penalty * across, penalty * beyond)
    else:
        found = minimum(rows, people.labels, weight, tilt)
    weights, bias = found[:-1, None].astype(np.float32)[None], found[-1:].astype(np.float32)[None]
    return Trained(Ensemble((weights,), (bias,), unit_rows=budget is not None), spent, steps)


def _gap(rows: NDArray[np.float64], at: NDArray[np.float64], between: Between) -> tuple[NDArray[np.float64], float]:
    """Linearise four times the gap: its slope in w, and what it is at w = 0."""
    if not at.any():
        return np.append(between.slope(rows[:, :-1]), 0.0), 0.0
    scores = 0.5 + 0.5 * np.tanh(0.5 * (rows @ at))
    slope = 4 * between.slope(rows * (scores * (1 - scores))[:, None])
    return slope, 4 * between.gap(scores) - float(slope @ at)
