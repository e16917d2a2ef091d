"""Fair fine-tuning by the printed protocol ("Fair finetuning mitigates distribution inference attacks", Experiments).

500 iterations on G_b and 100 of fine-tuning; on German, the smallest table, 200 and 50; batches of the 256 rows that
the paper names for DP-SGD; three hidden layers; columns scaled, here by the public encoding, then every row to norm 1.
The scenario sets what the text leaves open: whether an iteration is a step or an epoch, the largest table that counts
as small, the split of the rows, and that LSAC is tuned without rehearsal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from fairwall.learning.batches import Rows
from fairwall.learning.defences import fft, retraining
from fairwall.learning.defences.split import DefenceTask, Progress, Settings, deal
from fairwall.learning.ensemble import Ensemble, together, unit

BATCH = 256
ITERATIONS = (500, 100)
"""Iterations of training and of tuning."""
FEWER_ITERATIONS = (200, 50)
"""Iterations on a small table."""

Fit = Callable[[NDArray[np.intp], int, DefenceTask], Ensemble]
"""The type of a function that fits some of the models, given their numbers, the steps, and the models' task."""


def train(task: DefenceTask) -> Ensemble:
    """Train for as many iterations as printed."""
    settings = task.settings
    iterations, _ = FEWER_ITERATIONS if settings.small_table else ITERATIONS
    steps = [_steps(iterations, hand.own, BATCH, settings) for hand in deal(task)]

    def fit(_: NDArray[np.intp], steps: int, some: DefenceTask) -> Ensemble:
        recipe = replace(settings.recipe, steps=steps, batch_size=BATCH)
        return retraining.train_undefended(some.with_settings(replace(settings, recipe=recipe)))

    return _by_steps(fit, steps, task)


def tune(base: Ensemble, task: DefenceTask) -> Ensemble:
    """Tune for as many iterations as printed; an epoch goes through the other group's rows, not the rehearsed ones."""
    settings = task.settings
    _, iterations = FEWER_ITERATIONS if settings.small_table else ITERATIONS
    others = BATCH - round(settings.rehearsal * BATCH)
    steps = [
        _steps(iterations, hand.other, others, settings) if others else _steps(iterations, hand.own, BATCH, settings)
        for hand in deal(task)
    ]

    def fit(models: NDArray[np.intp], steps: int, some: DefenceTask) -> Ensemble:
        printed = replace(settings, recipe=replace(settings.recipe, batch_size=BATCH), tune_steps=steps)
        return fft.tune(base.take(models), some.with_settings(printed))

    return _by_steps(fit, steps, task)


def _steps(iterations: int, rows: Rows, size: int, settings: Settings) -> int:
    """Return the steps of these iterations, if a batch holds ``size`` of the rows."""
    return iterations * -(-len(rows) // size) if settings.epochs else iterations


def _by_steps(fit: Fit, steps: Sequence[int], task: DefenceTask) -> Ensemble:
    """Fit models with equal numbers of steps together, on scaled rows, and report the steps of all models."""
    scaled = replace(task.split, features=unit(task.split.features))
    made: list[Ensemble] = []
    order: list[int] = []
    done, total = 0, sum(steps)
    for length in sorted(set(steps)):
        models = np.flatnonzero(np.asarray(steps) == length)
        told = None if task.on_step is None else partial(_tell, task.on_step, done, total)
        seeds = [task.seeds[int(model)] for model in models]
        made.append(fit(models, length, DefenceTask(scaled, np.take(task.bits, models), seeds, task.settings, told)))
        order.extend(models.tolist())
        done += length * len(models)
    return replace(together(made).take(np.argsort(order, kind="stable")), unit_rows=True)


def _tell(on_step: Progress, before: int, total: int, done: int, _: int) -> None:
    on_step(before + done, total)
