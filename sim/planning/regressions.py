"""Many logistic regressions at once: the developer's, each trained on some rows of one table and measured on others.

The objective is J of `developer.training.objective`, for K regressions together: one gradient of all is one pass over
the table. Since l'' <= 1/4, its curvature lies below that of

    B = R' R / 4 + Lambda I + u u',    R the rows that are trained on.

Steps of B^-1 times the gradient therefore descend (Böhning and Lindsay, 1988), the first one from 0 is Newton's, and
Anderson mixing of the last steps makes few of them enough. R' R is taken to be its share of the whole table's. Single
precision and a stop at `_STILL` change a few decisions in a thousand: too few for a plan's means, too many for a
released model, which the developer trains on its own.

The models and draws are those of `developer.training.regression`, but many share each pass over the table; one by one
they would take thirty times as long on Adult.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from developer.training import Regression, TrainingBudget
from developer.training.objective import ROW_NORM, exponential_vector, ridge
from fairwall.arrays import Bytes, Floats
from fairwall.laws.noise.gaussian import gaussian_multiplier
from sim.planning import PlanError

Single = NDArray[np.float32]

_BLOCK_ROWS = 2048
"""Rows per block: few enough for their products to stay in the processor's cache."""

_STEPS_MAX, _MIXED, _STILL = 300, 5, 1e-3


@dataclass(frozen=True, eq=False)
class Design:
    """A table: rows (n, d), the last column ones, norm 1 for private regressions; labels and groups (n,), 0 or 1."""

    rows: Single
    labels: Bytes
    groups: Bytes

    @cached_property
    def squares(self) -> Floats:
        """R' R of all rows, shape (d, d)."""
        return (self.rows.T @ self.rows).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Parts:
    """S splits of a table: 1 for rows trained on, and for rows held out, both of shape (n, S) and disjoint."""

    train: Single
    held: Single

    @property
    def splits(self) -> int:
        """Number of splits."""
        return int(self.train.shape[1])

    def sizes(self) -> Floats:
        """Return the number of training rows of each split, shape (S,)."""
        return np.asarray(self.train.sum(0, dtype=np.float64))


@dataclass(frozen=True, eq=False)
class Objective:
    """The terms of K objectives besides the rows' losses: Lambda |w|^2 / 2 + (u w + c)^2 / 2 + b w.

    Shapes: ``split`` (K,), the split of each; ``ridge`` (K,), Lambda, above 0; ``tilt`` and ``across`` (K, d), b and u;
    ``beyond`` (K,), c.
    """

    split: NDArray[np.intp]
    ridge: Floats
    tilt: Floats
    across: Floats
    beyond: Floats


def minima(design: Design, parts: Parts, of: Objective) -> Floats:
    """Return the minimum of each objective on the training rows of its split, shape (K, d)."""
    models, dimension = of.tilt.shape
    share = parts.sizes()[of.split] / len(design.rows)
    bound = share[:, None, None] / 4 * design.squares + of.across[:, :, None] * of.across[:, None, :]
    bound += of.ridge[:, None, None] * np.eye(dimension)
    inverse = np.linalg.inv(bound)
    found = np.zeros((models, dimension))
    moving = np.arange(models)
    moves: list[Floats] = []
    changes: list[Floats] = []
    last = np.empty((0, 2, dimension))
    for _ in range(_STEPS_MAX):
        here, across = found[moving], of.across[moving]
        slope = _slopes_of_losses(design, parts, of.split[moving], here) + of.tilt[moving]
        slope += of.ridge[moving, None] * here + ((across * here).sum(1) + of.beyond[moving])[:, None] * across
        step = -(inverse[moving] @ slope[:, :, None])[:, :, 0]
        if len(last):
            moves, changes = [*moves, here - last[:, 0]][-_MIXED:], [*changes, step - last[:, 1]][-_MIXED:]
        there = here + step
        if moves:
            there -= _mixed(np.stack(moves, 2), np.stack(changes, 2), step)
        still = np.linalg.norm(step, axis=1) <= _STILL * (1 + np.linalg.norm(here, axis=1))
        found[moving[~still]] = there[~still]
        if still.all():
            break
        moving, last = moving[~still], np.stack([here, step], 1)[~still]
        moves, changes = [move[~still] for move in moves], [change[~still] for change in changes]
    return found


def _mixed(moves: Floats, changes: Floats, step: Floats) -> Floats:
    """Combine the last moves so that, if steps were linear, the next step would be as small as possible."""
    normal = changes.transpose(0, 2, 1) @ changes
    # Linearly dependent moves must not divide by 0.
    normal += 1e-10 * (np.trace(normal, axis1=1, axis2=2)[:, None, None] + 1e-30) * np.eye(normal.shape[1])
    weights = np.linalg.solve(normal, changes.transpose(0, 2, 1) @ step[:, :, None])
    return np.asarray(((moves + changes) @ weights)[:, :, 0])


def _slopes_of_losses(design: Design, parts: Parts, split: NDArray[np.intp], weights: Floats) -> Floats:
    total = np.zeros(weights.shape[::-1], np.float32)
    across = np.ascontiguousarray(weights.T, np.float32)
    for start in range(0, len(design.rows), _BLOCK_ROWS):
        here = slice(start, start + _BLOCK_ROWS)
        rows = design.rows[here]
        residuals = _probabilities(rows @ across)
        residuals -= design.labels[here, None]
        residuals *= parts.train[here][:, split]
        total += rows.T @ residuals
    return total.T.astype(np.float64)


def _probabilities(logits: Single) -> Single:
    """Compute probabilities in place. The tanh form of the logistic function avoids overflow."""
    logits *= np.float32(0.5)
    np.tanh(logits, out=logits)
    logits *= np.float32(0.5)
    logits += np.float32(0.5)
    return logits


def totals(design: Design, parts: Parts) -> tuple[Floats, Floats]:
    """Return the sums and numbers of the training rows by group, of shape (S, 2, d) and (S, 2)."""
    members = [parts.train * (design.groups == group)[:, None] for group in (0, 1)]
    sums = np.stack([(member.T @ design.rows) for member in members], 1)
    return sums.astype(np.float64), np.stack([member.sum(0, dtype=np.float64) for member in members], 1)


def gaps_around(design: Design, parts: Parts, split: NDArray[np.intp], weights: Floats) -> tuple[Floats, Floats]:
    """Return gaps of mean probabilities on training rows, group 1's less group 0's, shape (K,), and their gradients."""
    _, sizes = totals(design, parts)
    gaps, slopes = np.zeros(len(weights)), np.zeros(weights.shape[::-1], np.float32)
    across = np.ascontiguousarray(weights.T, np.float32)
    for start in range(0, len(design.rows), _BLOCK_ROWS):
        here = slice(start, start + _BLOCK_ROWS)
        rows, group = design.rows[here], design.groups[here, None].astype(np.float32)
        each = parts.train[here] * (group / sizes[:, 1] - (1 - group) / sizes[:, 0]).astype(np.float32)
        weight, chances = each[:, split], _probabilities(rows @ across)
        gaps += (weight * chances).sum(0)
        slopes += rows.T @ (weight * chances * (1 - chances))
    return gaps, slopes.T.astype(np.float64)


def measured(design: Design, parts: Parts, split: NDArray[np.intp], weights: Floats) -> tuple[Floats, Floats]:
    """Return accuracy and gap on the rows held out, in [0, 1], of shape (K,) for weights of shape (K, d).

    Decisions are 1 from probability 1/2 on; the gap is the distance between the groups' rates of ones.
    """
    right, ones = np.zeros(len(weights)), np.zeros((2, len(weights)))
    across = np.ascontiguousarray(weights.T, np.float32)
    for start in range(0, len(design.rows), _BLOCK_ROWS):
        here = slice(start, start + _BLOCK_ROWS)
        decisions, held = design.rows[here] @ across >= 0, parts.held[here][:, split]
        right += ((decisions == design.labels[here, None]) * held).sum(0)
        for group in (0, 1):
            ones[group] += (decisions * held * (design.groups[here, None] == group)).sum(0)
    sizes = [(parts.held * (design.groups == group)[:, None]).sum(0, dtype=np.float64) for group in (0, 1)]
    rates = [ones[group] / sizes[group][split] for group in (0, 1)]
    return right / (sizes[0] + sizes[1])[split], np.abs(rates[1] - rates[0])


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

    accuracy: Floats
    gap: Floats


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


def _trained(design: Design, parts: Parts, of: Objective, strengths: Floats, like: Regression) -> tuple[Floats, Floats]:
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


def _unit_noise(size: int, pure: bool, rng: np.random.Generator) -> Floats:
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
