"""Many logistic regressions at once, each trained on some rows of one table and measured on others.

The objective is J of `developer.training.objective`, for K regressions together: one gradient of all is one pass over
the table. Since l'' <= 1/4, its curvature lies below that of

    B = R' R / 4 + Lambda I + u u',    R the rows that are trained on.

Steps of B^-1 times the gradient therefore descend (Böhning and Lindsay, 1988), the first one from 0 is Newton's, and
Anderson mixing of the last steps makes few of them enough. R' R is taken to be its share of the whole table's. Single
precision and a stop at `_STILL` change a few decisions in a thousand: too few for a plan's means, too many for a
released model, which the developer trains on its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Single = NDArray[np.float32]

_BLOCK_ROWS = 2048
"""Rows per block: few enough for their products to stay in the processor's cache."""

_STEPS_MAX, _MIXED, _STILL = 300, 5, 1e-3


@dataclass(frozen=True, eq=False)
class Design:
    """A table: rows (n, d), the last column ones, norm 1 for private regressions; labels and groups (n,), 0 or 1."""

    rows: Single
    labels: NDArray[np.uint8]
    groups: NDArray[np.uint8]

    @cached_property
    def squares(self) -> NDArray[np.float64]:
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

    def sizes(self) -> NDArray[np.float64]:
        """Return the number of training rows of each split, shape (S,)."""
        return np.asarray(self.train.sum(0, dtype=np.float64))


@dataclass(frozen=True, eq=False)
class Objective:
    """The terms of K objectives besides the rows' losses: Lambda |w|^2 / 2 + (u w + c)^2 / 2 + b w.

    Shapes: ``split`` (K,), the split of each; ``ridge`` (K,), Lambda, above 0; ``tilt`` and ``across`` (K, d), b and u;
    ``beyond`` (K,), c.
    """

    split: NDArray[np.intp]
    ridge: NDArray[np.float64]
    tilt: NDArray[np.float64]
    across: NDArray[np.float64]
    beyond: NDArray[np.float64]


def minima(design: Design, parts: Parts, of: Objective) -> NDArray[np.float64]:
    """Return the minimum of each objective on the training rows of its split, shape (K, d)."""
    models, dimension = of.tilt.shape
    share = parts.sizes()[of.split] / len(design.rows)
    bound = share[:, None, None] / 4 * design.squares + of.across[:, :, None] * of.across[:, None, :]
    bound += of.ridge[:, None, None] * np.eye(dimension)
    inverse = np.linalg.inv(bound)
    found = np.zeros((models, dimension))
    moving = np.arange(models)
    moves: list[NDArray[np.float64]] = []
    changes: list[NDArray[np.float64]] = []
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


def _mixed(moves: NDArray[np.float64], changes: NDArray[np.float64], step: NDArray[np.float64]) -> NDArray[np.float64]:
    """Combine the last moves so that, if steps were linear, the next step would be as small as possible."""
    normal = changes.transpose(0, 2, 1) @ changes
    # Linearly dependent moves must not divide by 0.
    normal += 1e-10 * (np.trace(normal, axis1=1, axis2=2)[:, None, None] + 1e-30) * np.eye(normal.shape[1])
    weights = np.linalg.solve(normal, changes.transpose(0, 2, 1) @ step[:, :, None])
    return np.asarray(((moves + changes) @ weights)[:, :, 0])


def _slopes_of_losses(
    design: Design, parts: Parts, split: NDArray[np.intp], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
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


def totals(design: Design, parts: Parts) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the sums and numbers of the training rows by group, of shape (S, 2, d) and (S, 2)."""
    members = [parts.train * (design.groups == group)[:, None] for group in (0, 1)]
    sums = np.stack([(member.T @ design.rows) for member in members], 1)
    return sums.astype(np.float64), np.stack([member.sum(0, dtype=np.float64) for member in members], 1)


def gaps_around(
    design: Design, parts: Parts, split: NDArray[np.intp], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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


def measured(
    design: Design, parts: Parts, split: NDArray[np.intp], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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
