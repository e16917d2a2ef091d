"""The developer's regressions, trained on many splits of one table at once.

The models and draws are those of `developer.training.regression`, but many share each pass over the table
(`sim.planning.regressions`); one by one they would take thirty times as long on Adult.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from developer.training import Regression, TrainingBudget
from developer.training.objective import ROW_NORM, exponential_vector, ridge
from fairwall.laws.gaussian import gaussian_multiplier
from sim.planning.errors import PlanError
from sim.planning.regressions import Design, Objective, Parts, gaps_around, measured, minima, totals

_STRENGTHS, _STATISTICS, _KAPPAS, _RIDGES = (0.1, 0.3, 1.0, 10.0), (0.3, 0.6), (0.1, 0.02), (1.0, 25.0)
_TELLINGS = 3
_ENTRIES = 2_000_000
"""Most matrix entries in one batch of regressions."""


def private(epsilon: float, delta: float, times: float = 1.0) -> tuple[Regression, ...]:
    """Return the private settings to try: PrivLR and PFLR* over a grid, each with this total epsilon and delta.

    With little noise (epsilon above 1, or rows counted ``times``) the grid has a third ridge, as heavy as that of
    epsilon 1: a heavy ridge keeps the gap small, and what can be done at an epsilon can be done at a larger one.
    """
    plenty = max(1.0, epsilon * times)
    kappas = _KAPPAS if plenty == 1 else (*_KAPPAS, _KAPPAS[-1] / plenty)
    plain = [Regression(budget=TrainingBudget(epsilon, delta), kappa=kappa) for kappa in kappas]
    fair = [
        Regression(strength=strength, budget=TrainingBudget(epsilon, delta, statistics), kappa=kappa)
        for strength in _STRENGTHS
        for statistics in _STATISTICS
        for kappa in kappas
    ]
    return (*plain, *fair)


def free() -> tuple[Regression, ...]:
    """Return the settings to try without privacy: LR and FairLR over the same strengths."""
    fair = [Regression(strength=mu, tellings=_TELLINGS, ridge=weight) for mu in _STRENGTHS for weight in _RIDGES]
    return (*(Regression(ridge=weight) for weight in _RIDGES), *fair)


class Outcomes(NamedTuple):
    """Accuracy and gap of decisions on held-out rows, each of shape (settings, trainings), in [0, 1]."""

    accuracy: NDArray[np.float64]
    gap: NDArray[np.float64]


def outcomes(
    design: Design, parts: Parts, settings: Sequence[Regression], seeds: Sequence[int], times: float = 1.0
) -> Outcomes:
    """Train every setting on every split, and measure accuracy and gap on the rows held out.

    Either all settings have a budget or none has. A private regression is that of `developer.training.train` with its
    split's seed. Each training row counts ``times``, above 0: noise then weighs less, sampling error as much. Raises
    PlanError if no perturbation is known to satisfy so large a delta.
    """
    limits = import_module("threadpoolctl")  # installed with scikit-learn, and untyped
    # The products are too small for several threads, which would wait for each other on a busy machine.
    with limits.threadpool_limits(1):
        if settings[0].budget is None:
            objective = _free(parts, settings, design.rows.shape[1])
        else:
            objective = _private(design, parts, settings, seeds, times)
        size = max(1, _ENTRIES // design.rows.shape[1] ** 2)
        batches = [slice(start, start + size) for start in range(0, len(objective.split), size)]
        strengths = np.repeat([setting.strength for setting in settings], parts.splits)
        found = [_trained(design, parts, _part(objective, batch), strengths[batch], settings[0]) for batch in batches]
    shape = len(settings), parts.splits
    return Outcomes(*(np.concatenate(values).reshape(shape) for values in zip(*found, strict=True)))


def _part(of: Objective, batch: slice) -> Objective:
    return Objective(of.split[batch], of.ridge[batch], of.tilt[batch], of.across[batch], of.beyond[batch])


def _trained(
    design: Design, parts: Parts, of: Objective, strengths: NDArray[np.float64], like: Regression
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    weights = minima(design, parts, of)
    if like.budget is None and strengths.any():
        # As the developer does: the gap of mean probabilities, to first order around the last solution.
        weights = np.zeros_like(weights)
        for _ in range(_TELLINGS):
            gaps, slopes = gaps_around(design, parts, of.split, weights)
            penalty = 4 * np.sqrt(parts.sizes()[of.split] * strengths)
            beyond = penalty * (gaps - (slopes * weights).sum(1))
            told = Objective(of.split, of.ridge, of.tilt, penalty[:, None] * slopes, beyond)
            weights = minima(design, parts, told)
    return measured(design, parts, of.split, weights)


def _free(parts: Parts, settings: Sequence[Regression], dimension: int) -> Objective:
    split = np.tile(np.arange(parts.splits), len(settings))
    none = np.zeros((len(split), dimension))
    ridges = np.repeat([setting.ridge for setting in settings], parts.splits)
    return Objective(split, ridges, none, none, np.zeros(len(split)))


def _private(
    design: Design, parts: Parts, settings: Sequence[Regression], seeds: Sequence[int], times: float
) -> Objective:
    dimension = design.rows.shape[1]
    sums, sizes = totals(design, parts)
    pure = all(setting.budget is not None and setting.budget.delta == 0 for setting in settings)
    tilts, noises = (
        np.stack([_unit_noise(size, pure, np.random.default_rng([seed, stream])) for seed in seeds])
        for stream, size in ((0, dimension), (1, 2 * dimension))
    )
    ridges, tilt, across = [], [], []
    for setting in settings:
        budget = setting.budget
        assert budget is not None
        epsilon, delta, slopes = budget.epsilon, budget.delta, np.zeros_like(tilts)
        if setting.strength > 0:
            told = np.dstack([sums[:, :, :-1], sizes])
            spread = _spread(budget.statistics * epsilon, delta / 2)
            told += spread / times * noises.reshape(told.shape)
            means = told[:, :, :-1] / np.maximum(told[:, :, -1:], 1 / times)
            slopes[:, :-1] = np.sqrt(parts.sizes() * setting.strength)[:, None] * (means[:, 1] - means[:, 0])
            epsilon, delta = epsilon * (1 - budget.statistics), delta / 2
        left = epsilon * (1 - setting.kappa)
        ridges.append(np.full(parts.splits, ridge(setting.kappa * epsilon) / times))
        tilt.append(_tilt_spread(left, delta) / times * tilts)
        across.append(slopes)
    split = np.tile(np.arange(parts.splits), len(settings))
    return Objective(split, np.concatenate(ridges), np.concatenate(tilt), np.concatenate(across), np.zeros(len(split)))


def _unit_noise(size: int, pure: bool, rng: np.random.Generator) -> NDArray[np.float64]:
    return exponential_vector(size, rng) if pure else rng.standard_normal(size)


@functools.cache
def _spread(epsilon: float, delta: float) -> float:
    """Return the noise scale for a vector that one record changes by at most `ROW_NORM`."""
    return ROW_NORM * gaussian_multiplier(epsilon, delta) if delta > 0 else ROW_NORM / epsilon


def _tilt_spread(epsilon: float, delta: float) -> float:
    """Return the noise scale of the perturbation: see `developer.training.objective.perturbation`."""
    spread = _spread(epsilon, delta / 2)
    if delta > 0 and epsilon < ROW_NORM**2 / (2 * spread**2):
        raise PlanError(f"--delta: {2 * delta:g} is so large that no perturbation is known to keep it")
    return spread
