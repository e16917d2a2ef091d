"""Fair fine-tuning: from the model trained on G_b, on rows of G_{1-b}, under an equalized-odds penalty.

A batch holds the share rho of G_b's rows (rehearsal) and 1 - rho of G_{1-b}'s, each stratified by label and group, so
that every cell with rows is in every batch and the batch's gaps exist. ``plain-finetune`` has lambda = 0.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fairwall.learning.batches import Rows, Shuffled, stratified
from fairwall.learning.defences.split import DefenceTask, ModelRows, Settings, deal, derived
from fairwall.learning.ensemble import Ensemble
from fairwall.learning.penalty import EqualizedOdds
from fairwall.learning.training import train as fit


def tune(
    base: Ensemble, task: DefenceTask, *, attributes: int = 1, weights: tuple[float, float] | None = None
) -> Ensemble:
    """Tune models that were trained on G_b on rows of G_{1-b}, with rehearsal and penalty.

    The penalty and the strata are of the split's first ``attributes`` attributes; ``weights`` are of the two labels'
    gaps.
    """
    split, settings = task.split, task.settings
    groups = split.groups[:attributes]
    # Each row's cell: its label and its groups, as one number.
    cells = np.asarray(split.labels, np.intp)
    for group in groups:
        cells = 2 * cells + group
    batches = [_mixed(hand, cells, settings) for hand in deal(task)]
    penalty = EqualizedOdds(settings.strength, groups, weights) if settings.strength > 0 else None
    recipe = replace(settings.recipe, steps=settings.tune_steps)
    seeds = derived(task.seeds, 2)
    return fit(split.features, split.labels, batches, seeds, recipe, penalty=penalty, start=base, on_step=task.on_step)


def plain(base: Ensemble, task: DefenceTask) -> Ensemble:
    """Tune without a penalty."""
    return tune(base, task.with_settings(replace(task.settings, strength=0.0)))


def _mixed(model_rows: ModelRows, cells: NDArray[np.intp], settings: Settings) -> Shuffled:
    """Return a plan of batches with the share rho of G_b's rows."""
    size = settings.recipe.batch_size
    rehearsed = round(settings.rehearsal * size)
    strata: tuple[tuple[Rows, int], ...] = ()
    for rows, share in ((model_rows.own, rehearsed), (model_rows.other, size - rehearsed)):
        if share > 0:
            strata += stratified(rows, share, cells[rows]).strata
    return Shuffled(strata)
