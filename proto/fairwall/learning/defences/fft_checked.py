"""Algorithm 1 of "Fair finetuning mitigates distribution inference attacks": measure, tune, accept or reject.

A baseline trained on G_b is measured on held-out samples of both distributions: the accuracy gap, W, Delta_EO and the
size ratio r = |G_{1-b}| / |G_b|. If its gap is above tau, it is tuned, and the tuned model accepted if its gap is tau
at most. The paper names a large W Delta_EO and a small r as reasons to expect failure; neither decides here: Theorem
1's bound need not hold, and r is given no threshold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Bools, Floats
from fairwall.learning.defences import fft, retraining
from fairwall.learning.defences.split import DefenceTask, TrainingSplit, deal
from fairwall.learning.ensemble import Ensemble, together
from fairwall.learning.fairness import TAU, Leakage, leakage

HELD_OUT = 0.2
"""Share of the rows held out from training for the decision; the same rows for all models."""


@dataclass(frozen=True, eq=False)
class ThresholdDecision:
    """The procedure's decision about each of M models, and the measurements behind it.

    Attributes
    ----------
    released : the models to release: tuned if accepted, else the baseline.
    needed, accepted : (M,), whether the baseline's gap is above tau, and tuning then succeeded.
    before, after : measured on the held-out samples: the baseline, and the tuned model.
    size_ratio : (M,), r = rows of G_{1-b} over rows of G_b, in (0, inf).
    """

    released: Ensemble
    needed: Bools
    accepted: Bools
    before: Leakage
    after: Leakage
    size_ratio: Floats

    @property
    def rejected(self) -> Bools:
        """Whether each model leaks by more than tau, tuned or not, (M,)."""
        return np.asarray(self.needed & ~self.accepted)


def train(task: DefenceTask) -> Ensemble:
    """Train on the rows that are not held out."""
    return retraining.train_undefended(_parted(task)[0])


def tune(base: Ensemble, task: DefenceTask) -> Ensemble:
    """Tune on the same rows, and return the models that the procedure releases."""
    rest, held_out = _parted(task)
    return deploy(base, rest, held_out).released


def _parted(task: DefenceTask) -> tuple[DefenceTask, TrainingSplit]:
    """Return the task on the rows to train on, and the held-out rows."""
    split = task.split
    order = np.random.default_rng(0).permutation(len(split.labels))
    held_out, rest = np.split(order, [int(HELD_OUT * len(order))])
    return replace(task, split=split.take(rest)), split.take(held_out)


def deploy(
    base: Ensemble,
    task: DefenceTask,
    held_out: TrainingSplit,
    *,
    side: NDArray[np.integer] | None = None,
    tau: float = TAU,
) -> ThresholdDecision:
    """Run the procedure on baselines that were trained on G_b, one for each bit, by the task.

    No baseline may have seen a held-out row. `side` is the distribution that each of these is a sample of; by default
    the group: pure groups. TrainingUnavailable if PyTorch is not installed.
    """
    tuned = fft.tune(base, task)
    before, after = (_measured(models, held_out, side) for models in (base, tuned))
    needed = before.gap > tau
    accepted = needed & (after.gap <= tau)
    models = np.arange(len(task.seeds))
    released = together([base, tuned]).take(np.where(accepted, models + len(models), models))
    ratio = np.array([len(hand.other) / len(hand.own) for hand in deal(task)])
    return ThresholdDecision(released, needed, accepted, before, after, ratio)


def _measured(models: Ensemble, held_out: TrainingSplit, side: NDArray[np.integer] | None) -> Leakage:
    decisions = models.scores(held_out.features) >= 0.5
    return leakage(decisions, held_out.labels, held_out.groups[0], side)
