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

from developer.training.groups import require_both
from developer.training.model import Budget, People, Spent, Trained
from developer.training.objective import ROW_NORM, exponential_vector, minimum, perturbation, ridge
from fairwall.errors import UserError
from fairwall.laws.gaussian import gaussian_multiplier
from fairwall.learning.ensemble import Ensemble, unit

Difference = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Tells the mean of group 1's rows less that of group 0's, of rows of any length; of norm 1 at most with a budget."""


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


def own_difference(settings: Regression, protected: NDArray[np.uint8], seed: int) -> Difference:
    """Tell the difference oneself, with the noise that the budget has for it: the developer holds the attribute.

    Each group's sum of rows and its size are released at once; a record adds a row of norm 1 at most, and 1.

    Raises
    ------
    UserError
        If a group has no row.
    """
    require_both(protected)
    budget, rng = settings.budget, np.random.default_rng([seed, 1])

    def difference(rows: NDArray[np.float64]) -> NDArray[np.float64]:
        of_group = np.stack([protected == 0, protected == 1]).astype(np.float64)
        told = of_group @ np.column_stack([rows, np.ones(len(rows))])
        if budget is not None:
            told += _noise(told.size, budget.statistics * budget.epsilon, budget.delta / 2, rng).reshape(told.shape)
        means = told[:, :-1] / np.maximum(told[:, -1:], 1)
        return np.asarray(means[1] - means[0])

    return difference


def _noise(size: int, epsilon: float, delta: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw noise for a vector that one record changes by `ROW_NORM` at most."""
    if delta > 0:
        return np.asarray(ROW_NORM * gaussian_multiplier(epsilon, delta) * rng.standard_normal(size))
    return ROW_NORM / epsilon * exponential_vector(size, rng)


def train(people: People, settings: Regression, seed: int, difference: Difference | None = None) -> Trained:
    """Train a regression.

    Parameters
    ----------
    people : People
    settings : Regression
    seed : int, at least 0
        A private regression is a function of it and of what it is given; the others draw nothing.
    difference : callable, optional
        What a fair regression is told, once. With a budget it costs the statistics' share of epsilon and half of delta
        at most, whoever tells it.

    Raises
    ------
    UserError
        If a fair regression is not told the difference.
    """
    budget, fair = settings.budget, settings.strength > 0
    if fair and difference is None:
        raise UserError("a fair regression needs the difference of the groups' means")
    features = people.features if budget is None else unit(people.features)
    rows = np.column_stack([features, np.ones(len(features))])
    n, dimension = rows.shape
    tilt, weight, spent = np.zeros(dimension), settings.ridge, None
    if budget is not None:
        epsilon, delta = budget.epsilon, budget.delta
        if fair:
            epsilon, delta = epsilon * (1 - budget.statistics), delta / 2
        kappa = settings.kappa * epsilon
        weight = ridge(kappa)
        tilt = perturbation(dimension, epsilon, delta, kappa, np.random.default_rng([seed, 0]))
        spent = Spent(budget.epsilon, budget.delta)
    if fair and difference is not None:
        found = np.zeros(dimension)
        for _ in range(settings.tellings):
            penalty = math.sqrt(n * settings.strength)
            across, beyond = _gap(rows, found, difference)
            found = minimum(rows, people.labels, weight, tilt, penalty * across, penalty * beyond)
    else:
        found = minimum(rows, people.labels, weight, tilt)
    weights, bias = found[:-1, None].astype(np.float32)[None], found[-1:].astype(np.float32)[None]
    return Trained(Ensemble((weights,), (bias,), unit_rows=budget is not None), spent)


def _gap(
    rows: NDArray[np.float64], at: NDArray[np.float64], difference: Difference
) -> tuple[NDArray[np.float64], float]:
    """Linearise four times the gap: its slope in w, and what it is at w = 0."""
    if not at.any():
        return np.append(difference(rows[:, :-1]), 0.0), 0.0
    scores = 0.5 + 0.5 * np.tanh(0.5 * (rows @ at))
    told = 4 * difference(np.column_stack([rows * (scores * (1 - scores))[:, None], scores]))
    return told[:-1], float(told[-1] - told[:-1] @ at)
