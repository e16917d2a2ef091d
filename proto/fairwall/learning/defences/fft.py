"""Fair fine-tuning: from the model trained on G_b, on rows of G_{1-b}, under an equalized-odds penalty.

A batch holds the share rho of G_b's rows (rehearsal) and 1 - rho of G_{1-b}'s, each stratified by label and group, so
that every cell that has rows is in every batch and the batch's gaps exist. ``plain-finetune`` is that at lambda = 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fairwall.learning.batches import Rows, Shuffled, stratified
from fairwall.learning.defences.split import Hand, Progress, Settings, Split, deal, derived
from fairwall.learning.ensemble import Ensemble
from fairwall.learning.penalty import EqualizedOdds
from fairwall.learning.training import train as fit


def tune(
    base: Ensemble,
    split: Split,
    bits: Sequence[int] | NDArray[np.integer],
    seeds: Sequence[int],
    settings: Settings,
    on_step: Progress | None = None,
    *,
    attributes: int = 1,
    weights: tuple[float, float] | None = None,
) -> Ensemble:
    """Tune models that were trained on G_b on rows of G_{1-b}, with rehearsal and penalty.

    Parameters
    ----------
    base, split, bits, seeds, settings, on_step
        As every defence's tuning takes them.
    attributes : int
        How many of the split's attributes the penalty looks at, and batches are stratified by.
    weights : optional
        The penalty's weights of the two labels' gaps.
    """
    groups = split.groups[:attributes]
    # Each row's cell: its label and its groups, as one number.
    cells = np.asarray(split.labels, np.intp)
    for group in groups:
        cells = 2 * cells + group
    batches = [_mixed(hand, cells, settings) for hand in deal(split, bits, seeds, settings)]
    penalty = EqualizedOdds(settings.strength, groups, weights) if settings.strength > 0 else None
    recipe = replace(settings.recipe, steps=settings.tune_steps)
    return fit(
        split.features, split.labels, batches, derived(seeds, 2), recipe, penalty=penalty, start=base, on_step=on_step
    )


def plain(
    base: Ensemble,
    split: Split,
    bits: Sequence[int] | NDArray[np.integer],
    seeds: Sequence[int],
    settings: Settings,
    on_step: Progress | None = None,
) -> Ensemble:
    """Tune without a penalty."""
    return tune(base, split, bits, seeds, replace(settings, strength=0.0), on_step)


def _mixed(hand: Hand, cells: NDArray[np.intp], settings: Settings) -> Shuffled:
    """Plan batches with the share rho of G_b's rows."""
    size = settings.recipe.batch_size
    rehearsed = round(settings.rehearsal * size)
    strata: tuple[tuple[Rows, int], ...] = ()
    for rows, share in ((hand.own, rehearsed), (hand.other, size - rehearsed)):
        if share > 0:
            strata += stratified(rows, share, cells[rows]).strata
    return Shuffled(strata)
