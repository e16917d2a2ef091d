"""Algorithm 1 of "Fair finetuning mitigates distribution inference attacks": measure, tune, accept or reject.

A baseline trained on G_b is measured on held-out samples of both distributions: the accuracy gap, W, Delta_EO and the
size ratio r = |G_{1-b}| / |G_b|. A gap of tau at most needs no tuning. Otherwise the model is tuned, and accepted if
its gap is then tau at most, else rejected: the baseline is what is left. The paper names a large W Delta_EO and a small
r as reasons to expect failure; neither decides here: Theorem 1's bound need not hold, and r is given no threshold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fairwall.learning.defences import fft, none
from fairwall.learning.defences.split import Split, Task, deal
from fairwall.learning.ensemble import Ensemble, together
from fairwall.learning.fairness import TAU, Leakage, leakage

HELD_OUT = 0.2
"""The share of the rows that decides instead of being trained on; the same rows for all models."""


@dataclass(frozen=True, eq=False)
class Deployment:
    """What the procedure decided about each of M models, and from what.

    Attributes
    ----------
    released : the models to release: tuned where accepted, else the baseline.
    needed : (M,), whether the baseline's gap is above tau.
    accepted : (M,), whether a model that needed it was tuned with success.
    before, after : measured on the held-out samples: the baseline, and the tuned model.
    size_ratio : (M,), r = rows of G_{1-b} over rows of G_b, in (0, inf).
    """

    released: Ensemble
    needed: NDArray[np.bool_]
    accepted: NDArray[np.bool_]
    before: Leakage
    after: Leakage
    size_ratio: NDArray[np.float64]

    @property
    def rejected(self) -> NDArray[np.bool_]:
        """Which models leak by more than tau whether tuned or not, (M,)."""
        return np.asarray(self.needed & ~self.accepted)


def train(task: Task) -> Ensemble:
    """Train on the rows that are not held out."""
    return none.train(_parted(task)[0])


def tune(base: Ensemble, task: Task) -> Ensemble:
    """Tune on the same rows, and release the models that the procedure says."""
    rest, held_out = _parted(task)
    return deploy(base, rest, held_out).released


def _parted(task: Task) -> tuple[Task, Split]:
    """Part the rows to train on from those that are held out."""
    split = task.split
    order = np.random.default_rng(0).permutation(len(split.labels))
    held_out, rest = np.split(order, [int(HELD_OUT * len(order))])
    return replace(task, split=split.take(rest)), split.take(held_out)


def deploy(
    base: Ensemble, task: Task, held_out: Split, *, side: NDArray[np.integer] | None = None, tau: float = TAU
) -> Deployment:
    """Run the procedure on baselines.

    These were trained on G_b, one for each bit, by the task, and none of them on a row that is held out. `side` is
    which distribution each of those is a sample of; its group where not given: pure groups. TrainingUnavailable if
    PyTorch is not installed.
    """
    tuned = fft.tune(base, task)
    before, after = (_measured(models, held_out, side) for models in (base, tuned))
    needed = before.gap > tau
    accepted = needed & (after.gap <= tau)
    models = np.arange(len(task.seeds))
    released = together([base, tuned]).take(np.where(accepted, models + len(models), models))
    ratio = np.array([len(hand.other) / len(hand.own) for hand in deal(task)])
    return Deployment(released, needed, accepted, before, after, ratio)


def _measured(models: Ensemble, held_out: Split, side: NDArray[np.integer] | None) -> Leakage:
    decisions = models.scores(held_out.features) >= 0.5
    return leakage(decisions, held_out.labels, held_out.groups[0], side)
