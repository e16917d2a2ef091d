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
from fairwall.learning.defences.split import Progress, Settings, Task, deal
from fairwall.learning.ensemble import Ensemble, together, unit

BATCH = 256
ITERATIONS = (500, 100)
"""Of training and of tuning."""
FEWER_ITERATIONS = (200, 50)
"""The same on a small table."""

Fit = Callable[[NDArray[np.intp], int, Task], Ensemble]
"""Fits some of the models, by their numbers, in so many steps: the task of these."""


def train(task: Task) -> Ensemble:
    """Train for as many iterations as printed."""
    settings = task.settings
    iterations, _ = FEWER_ITERATIONS if settings.small_table else ITERATIONS
    steps = [_steps(iterations, hand.own, BATCH, settings) for hand in deal(task)]

    def fit(_: NDArray[np.intp], steps: int, some: Task) -> Ensemble:
        recipe = replace(settings.recipe, steps=steps, batch_size=BATCH)
        return none.train(some.with_settings(replace(settings, recipe=recipe)))

    return _by_steps(fit, steps, task)


def tune(base: Ensemble, task: Task) -> Ensemble:
    """Tune for as many iterations as printed; an epoch goes through the other group's rows, not the rehearsed ones."""
    settings = task.settings
    _, iterations = FEWER_ITERATIONS if settings.small_table else ITERATIONS
    others = BATCH - round(settings.rehearsal * BATCH)
    steps = [
        _steps(iterations, hand.other, others, settings) if others else _steps(iterations, hand.own, BATCH, settings)
        for hand in deal(task)
    ]

    def fit(models: NDArray[np.intp], steps: int, some: Task) -> Ensemble:
        printed = replace(settings, recipe=replace(settings.recipe, batch_size=BATCH), tune_steps=steps)
        return fft.tune(base.take(models), some.with_settings(printed))

    return _by_steps(fit, steps, task)


def _steps(iterations: int, rows: Rows, each: int, settings: Settings) -> int:
    """Count the steps of so many iterations, if a batch holds so many of the rows."""
    return iterations * -(-len(rows) // each) if settings.epochs else iterations


def _by_steps(fit: Fit, steps: Sequence[int], task: Task) -> Ensemble:
    """Fit the models that take equally many steps together, on scaled rows, and tell the steps of all."""
    scaled = replace(task.split, features=unit(task.split.features))
    made: list[Ensemble] = []
    order: list[int] = []
    done, total = 0, sum(steps)
    for length in sorted(set(steps)):
        models = np.flatnonzero(np.asarray(steps) == length)
        told = None if task.on_step is None else partial(_tell, task.on_step, done, total)
        seeds = [task.seeds[int(model)] for model in models]
        made.append(fit(models, length, Task(scaled, np.take(task.bits, models), seeds, task.settings, told)))
        order.extend(models.tolist())
        done += length * len(models)
    return replace(together(made).take(np.argsort(order, kind="stable")), unit_rows=True)


def _tell(on_step: Progress, before: int, total: int, done: int, _: int) -> None:
    on_step(before + done, total)
