"""The four logistic regressions: LR, FairLR, PrivLR, PFLR* (fair and private).

**Fair.** The penalty is n mu g^2 / 2, g being the groups' gap of mean scores to first order around the regression w_t
at the time of the request:

    g = 4 (g_t + v_t (w - w_t)),    g_t = difference of the groups' means of p_i,    v_t = that of p_i (1 - p_i) r_i.

Around w_0 = 0 it is the difference of the groups' mean log-odds: the covariance of Zafar, Valera, Gomez Rodriguez and
Gummadi (AISTATS 2017), which Xu, Yuan and Wu (WWW Companion 2019) use in FairLR and PFLR*. Equal mean log-odds are not
equal rates, so FairLR repeats the request. The penalty reads the rows only through v_t and g_t, which are paid for if
there is a budget; given these it is a quadratic like the ridge, without a part in any row's gradient.

**Private.** By objective perturbation (`developer.training.objective`): (epsilon, delta), or pure epsilon at delta 0.
The source's guarantee differs: Xu, Yuan and Wu use the functional mechanism (Zhang et al., VLDB 2012), which puts
Laplace noise on the coefficients of a polynomial near the loss, for pure epsilon; their PFLR* moreover centres that
noise so that the boundary turns towards fairness. Here the two parts of PFLR*, v_0 and the minimum, add up by basic
composition.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from developer.training.groups import GroupAdder, exact_sums, means_of, require_both, told
from developer.training.model import Trained, TrainingBudget, TrainingPromise, TrainingSet, TrainingStep
from developer.training.objective import ROW_NORM, exponential_vector, minimum, perturbation, ridge
from fairwall.arrays import Bytes, Floats
from fairwall.errors import UserError
from fairwall.laws.noise.gaussian import gaussian_multiplier
from fairwall.learning.ensemble import Ensemble, unit


@dataclass(frozen=True, eq=False)
class Between:
    """The group statistics of a fair regression: the advantaged group's mean less the disadvantaged one's.

    slope : of rows, (n, width), to (width,); with a budget the norm is 1 at most, and there is one request.
    gap : of scores, (n,); used by a regression with several requests.
    """

    slope: Callable[[Floats], Floats]
    gap: Callable[[Floats], float]


@dataclass(frozen=True)
class Regression:
    """The settings of a regression.

    Attributes
    ----------
    strength : mu, the weight of the squared gap; 0 for none.
    tellings : number of requests for group statistics, at least 1; with a budget exactly 1.
    ridge : Lambda, above 0, without a budget; with one it follows from ``kappa``.
    kappa : in (0, 1), the curvature's share of the minimum's epsilon: less is a larger ridge.
    """

    strength: float = 0.0
    tellings: int = 1
    ridge: float = 1.0
    budget: TrainingBudget | None = None
    kappa: float = 0.1

    def __post_init__(self) -> None:
        if not (self.strength >= 0 and self.ridge > 0 and 0 < self.kappa < 1):
            raise ValueError("mu is at least 0, Lambda above 0, and kappa in (0, 1)")
        if self.tellings < 1 or (self.budget is not None and self.tellings > 1):
            raise ValueError("groups are asked at least once, and once only where there is a budget")


def held_between(settings: Regression, protected: Bytes, seed: int) -> Between:
    """Return the groups' differences from a protected attribute that the developer holds, with the budget's noise.

    Each group's sum of rows and its size are released at once; a record adds a row of norm 1 at most, and 1.
    """
    require_both(protected)
    budget, rng = settings.budget, np.random.default_rng([seed, 1])

    def slope(rows: Floats) -> Floats:
        told = exact_sums(protected, rows)
        if budget is not None:
            told += _noise(told.size, budget.statistics * budget.epsilon, budget.delta / 2, rng).reshape(told.shape)
        return _apart(means_of(told))

    return Between(slope, lambda scores: float(slope(scores[:, None])[0]))


def told_between(settings: Regression, sums: GroupAdder, features: Floats) -> Between:
    """Return the groups' differences from another party's sums.

    With a budget, the sums of rows are requested. Without one, the groups' means of rows follow from the membership
    that `developer.training.groups.told` computes, and only the gap is requested again: the noise on a hundred columns
    would not be small on the rare ones, and the penalty would be met by moving weights that hardly any row feels.
    Memberships read all rows, which a privacy guarantee would not allow.
    """
    if settings.budget is not None:
        return Between(lambda rows: _apart(sums.means(rows)), lambda scores: sums.rates(scores).gap)
    membership = told(sums, features).membership
    weights = membership / max(membership.sum(), 1) - (1 - membership) / max((1 - membership).sum(), 1)
    return Between(lambda rows: np.asarray(weights @ rows), lambda scores: sums.rates(scores).gap)


def _apart(means: Floats) -> Floats:
    return np.asarray(means[1] - means[0])


def _noise(size: int, epsilon: float, delta: float, rng: np.random.Generator) -> Floats:
    """Return noise for a vector that one record changes by `ROW_NORM` at most."""
    if delta > 0:
        return np.asarray(ROW_NORM * gaussian_multiplier(epsilon, delta) * rng.standard_normal(size))
    return ROW_NORM / epsilon * exponential_vector(size, rng)


def train(people: TrainingSet, settings: Regression, seed: int, between: Between | None = None) -> Trained:
    """Train a regression; a private one is determined by `seed`, at least 0, the others draw nothing.

    A fair regression requires `between`. With a budget that costs the statistics' share of epsilon and at most half of
    delta, whatever its source.
    """
    budget, fair = settings.budget, settings.strength > 0
    if fair and between is None:
        raise UserError("a fair regression needs the difference of the groups' means")
    features = people.features if budget is None else unit(people.features)
    rows = np.column_stack([features, np.ones(len(features))])
    n, dimension = rows.shape
    tilt, weight, spent = np.zeros(dimension), settings.ridge, None
    steps: tuple[TrainingStep, ...] = ()
    if budget is not None:
        epsilon, delta = budget.epsilon, budget.delta
        if fair:
            epsilon, delta = epsilon * (1 - budget.statistics), delta / 2
        kappa = settings.kappa * epsilon
        weight = ridge(kappa)
        tilt = perturbation(dimension, epsilon, delta, kappa, np.random.default_rng([seed, 0]))
        spent = TrainingPromise(budget.epsilon, budget.delta)
        steps = (TrainingStep("the perturbed minimum", epsilon, delta),)
        if fair:
            steps = (
                TrainingStep("the groups' mean rows", budget.statistics * budget.epsilon, budget.delta / 2),
                *steps,
            )
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


def _gap(rows: Floats, at: Floats, between: Between) -> tuple[Floats, float]:
    """Linearise four times the gap: return its slope in w, and its value at w = 0."""
    if not at.any():
        return np.append(between.slope(rows[:, :-1]), 0.0), 0.0
    scores = 0.5 + 0.5 * np.tanh(0.5 * (rows @ at))
    slope = 4 * between.slope(rows * (scores * (1 - scores))[:, None])
    return slope, 4 * between.gap(scores) - float(slope @ at)
