"""Fair fine-tuning by the printed protocol ("Fair finetuning mitigates distribution inference attacks", Experiments).

500 iterations on G_b and 100 of fine-tuning, on German, the smallest table, 200 and 50; batches of the 256 rows that
the paper names for DP-SGD; three hidden layers; columns scaled, then every row scaled to norm 1. The public encoding
has scaled the columns already, so that what is left is the rows. What the text leaves open is set by the scenario:
whether an iteration is a step of the optimiser or an epoch, up to how many rows a table is as small as German, how the
rows are split, and that LSAC is tuned without rehearsal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from fairwall.learning.batches import Rows
from fairwall.learning.defences import fft, none
from fairwall.learning.defences.split import Progress, Settings, Split, deal
from fairwall.learning.ensemble import Ensemble, together, unit

BATCH = 256
ITERATIONS = (500, 100)
"""Of training and of tuning."""
FEWER_ITERATIONS = (200, 50)
"""The same on a small table."""

Fit = Callable[[NDArray[np.intp], int, Progress | None], Ensemble]
"""Fits some of the models, by their numbers, in so many steps."""


def train(
    split: Split,
    bits: Sequence[int] | NDArray[np.integer],
    seeds: Sequence[int],
    settings: Settings,
    on_step: Progress | None = None,
) -> Ensemble:
    """Train for as many iterations as printed."""
    scaled = replace(split, features=unit(split.features))
    iterations, _ = FEWER_ITERATIONS if settings.small_table else ITERATIONS
    hands = deal(split, bits, seeds, settings)
    steps = [_steps(iterations, hand.own, BATCH, settings) for hand in hands]

    def fit(models: NDArray[np.intp], steps: int, told: Progress | None) -> Ensemble:
        printed = replace(settings, recipe=replace(settings.recipe, steps=steps, batch_size=BATCH))
        return none.train(scaled, np.take(bits, models), [seeds[model] for model in models], printed, told)

    return _by_steps(fit, steps, on_step)


def tune(
    base: Ensemble,
    split: Split,
    bits: Sequence[int] | NDArray[np.integer],
    seeds: Sequence[int],
    settings: Settings,
    on_step: Progress | None = None,
) -> Ensemble:
    """Tune for as many iterations as printed; an epoch goes through the other group's rows, not the rehearsed ones."""
    scaled = replace(split, features=unit(split.features))
    _, iterations = FEWER_ITERATIONS if settings.small_table else ITERATIONS
    others = BATCH - round(settings.rehearsal * BATCH)
    hands = deal(split, bits, seeds, settings)
    steps = [
        _steps(iterations, hand.other, others, settings) if others else _steps(iterations, hand.own, BATCH, settings)
        for hand in hands
    ]

    def fit(models: NDArray[np.intp], steps: int, told: Progress | None) -> Ensemble:
        printed = replace(settings, recipe=replace(settings.recipe, batch_size=BATCH), tune_steps=steps)
        return fft.tune(
            base.take(models), scaled, np.take(bits, models), [seeds[model] for model in models], printed, told
        )

    return _by_steps(fit, steps, on_step)


def _steps(iterations: int, rows: Rows, each: int, settings: Settings) -> int:
    """Count the steps of so many iterations, if a batch holds so many of the rows."""
    return iterations * -(-len(rows) // each) if settings.epochs else iterations


def _by_steps(fit: Fit, steps: Sequence[int], on_step: Progress | None) -> Ensemble:
    """Fit the models that take equally many steps together, and tell the steps of all."""
    made: list[Ensemble] = []
    order: list[int] = []
    done, total = 0, sum(steps)
    for length in sorted(set(steps)):
        models = np.flatnonzero(np.asarray(steps) == length)
        told = None if on_step is None else partial(_tell, on_step, done, total)
        made.append(fit(models, length, told))
        order.extend(models.tolist())
        done += length * len(models)
    return replace(together(made).take(np.argsort(order, kind="stable")), unit_rows=True)


def _tell(on_step: Progress, before: int, total: int, done: int, _: int) -> None:
    on_step(before + done, total)
