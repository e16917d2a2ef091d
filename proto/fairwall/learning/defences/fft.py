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
from fairwall.learning.fairness import shifts
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


def tune_symmetric(base: Ensemble, task: DefenceTask) -> Ensemble:
    """Tune with rho = 1/2, whatever the settings say: only the model before tuning depends on b."""
    return tune(base, task.with_settings(replace(task.settings, rehearsal=0.5)))


def tune_multi(base: Ensemble, task: DefenceTask) -> Ensemble:
    """Tune for several attributes at once (the paper's Theorem 3), each penalty of strength lambda."""
    return tune(base, task, attributes=len(task.split.groups))


def tune_weighted(base: Ensemble, task: DefenceTask) -> Ensemble:
    """Tune with the sum of both labels' gaps, each weighed by its possible leakage, instead of the larger one.

    The paper's proof has ``sum over y of P(y) |P(A=1|y,D0) - P(A=1|y,D1)| gap_y`` before it takes the larger gap out of
    the sum. Those weights, with P(y) averaged over the two distributions, are the importance of a label's gap; for pure
    groups and mixtures of equal purity they are proportional to P(y) if labels are equally frequent in both groups.
    They are scaled to sum to 1, so that lambda means the same as in ``fft``.
    """
    split, settings = task.split, task.settings
    group = split.groups[0]
    # P(a | y, D_d) follows from the purity and the labels' frequencies in the groups.
    rates = np.array([[np.mean(split.labels[group == a] == y) for a in (0, 1)] for y in (0, 1)])
    share = np.array([[settings.purity, 1 - settings.purity], [1 - settings.purity, settings.purity]])
    weights = shifts(rates[None, :, :] * share[:, None, :])
    weights = weights / weights.sum() if weights.sum() > 0 else np.full(2, 0.5)
    pair = (float(weights[0]), float(weights[1]))
    return tune(base, task, weights=pair)
