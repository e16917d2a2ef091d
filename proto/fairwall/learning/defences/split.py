"""The input of a defence: rows of both groups, and the group that each model is to be trained on.

A model with bit b is trained on the distribution G_b: G_0's rows are the disadvantaged, G_1's the advantaged. With a
purity alpha below 1, G_b holds the share alpha of its own group and 1 - alpha of the other one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Bytes, Floats
from fairwall.learning.batches import Rows
from fairwall.learning.ensemble import Ensemble
from fairwall.learning.training import Recipe

PLAIN = Recipe()
PRIVATE = Recipe(steps=100, batch_size=2048, learning_rate=2e-2)

Progress = Callable[[int, int], None]
"""A callback with the model-steps done and those in all, of a training or of a tuning."""


@dataclass(frozen=True, eq=False)
class TrainingSplit:
    """One side's rows to train on; groups are (attributes, rows), 1 = advantaged, features (rows, d)."""

    features: Floats
    labels: Bytes
    groups: Bytes

    def __post_init__(self) -> None:
        if self.groups.ndim != 2 or self.groups.shape[1] != len(self.labels) or len(self.features) != len(self.labels):
            raise ValueError("features, labels and every attribute have one entry per row")
        if self.groups[0].min() == self.groups[0].max():
            raise ValueError("the game needs rows of both groups")

    def take(self, rows: Rows) -> TrainingSplit:
        """Return some rows, in their order."""
        return TrainingSplit(self.features[rows], self.labels[rows], self.groups[:, rows])


@dataclass(frozen=True)
class Settings:
    """The settings of a defence.

    Attributes
    ----------
    recipe : a model's training on G_b.
    strength : lambda, the weight of the equalized-odds penalty.
    rehearsal : rho in [0, 1], the share of G_b's rows in a batch of fine-tuning. At 0 a batch of pure groups has one
        group only, so that there is no gap to penalise.
    purity : alpha in [1/2, 1].
    rows : number of rows of G_b to train a model on; None for all of a pure group, and for mixtures the smaller
        group's.
    other_rows : the same of G_{1-b}, for fine-tuning; None for all of a pure group, and for mixtures as many as of G_b.
    private_recipe : a private model's training on G_b. Fewer, larger steps at a higher rate than without noise; at most
        as large as the rows. Its layers are those of ``recipe``. Chosen on Adult; the choice is not accounted for.
    epsilon, delta : a private model's budget.
    clip : the norm at which gradients are clipped; if adaptive, its first value.
    epochs : whether the printed iterations of ``fft-paper`` are passes through the rows instead of steps.
    small_table : whether the whole table is as small as German, for which the paper prints fewer iterations.
    """

    recipe: Recipe = PLAIN
    tune_steps: int = 200
    strength: float = 1.0
    rehearsal: float = 0.2
    purity: float = 1.0
    rows: int | None = None
    other_rows: int | None = None
    private_recipe: Recipe = PRIVATE
    epsilon: float = 3.0
    delta: float = 1e-5
    clip: float = 1.0
    adaptive_clipping: bool = False
    epochs: bool = False
    small_table: bool = False

    def __post_init__(self) -> None:
        if not (0 <= self.rehearsal <= 1 and 0.5 <= self.purity <= 1 and self.strength >= 0 and self.tune_steps >= 1):
            raise ValueError(
                "rehearsal lies in [0, 1], purity in [1/2, 1]; lambda is not below 0; there are steps to tune"
            )
        if any(size is not None and size < 1 for size in (self.rows, self.other_rows)):
            raise ValueError("there are rows to train and to tune on")


@dataclass(frozen=True, eq=False)
class DefenceTask:
    """The models to train, or to tune: each depends on its bit, its seed and the shared fields alone."""

    split: TrainingSplit
    bits: Sequence[int] | NDArray[np.integer]
    seeds: Sequence[int]
    settings: Settings
    on_step: Progress | None = None

    def with_settings(self, settings: Settings) -> DefenceTask:
        """Return the task with other settings."""
        return replace(self, settings=settings)


Train = Callable[[DefenceTask], Ensemble]
"""The type of a defence's training, one model a bit; ValueError for too few rows, or TrainingUnavailable."""

Tune = Callable[[Ensemble, DefenceTask], Ensemble]
"""The type of a defence's tuning of its trained models, which stay unchanged; raises as `Train`."""


def as_trained(base: Ensemble, _: DefenceTask) -> Ensemble:
    """Return the models as trained."""
    return base


@dataclass(frozen=True)
class Defence:
    """The training of a model, and its tuning: two steps, since many defences tune the same models."""

    train: Train
    tune: Tune = as_trained

    def __call__(
        self, split: TrainingSplit, bits: Sequence[int] | NDArray[np.integer], seeds: Sequence[int], settings: Settings
    ) -> Ensemble:
        """Return one model for each bit, trained and tuned."""
        task = DefenceTask(split, bits, seeds, settings)
        return self.tune(self.train(task), task)


@dataclass(frozen=True, eq=False)
class ModelRows:
    """One model's rows: of G_b, and of G_{1-b}; no row is in both."""

    own: Rows
    other: Rows


def deal(task: DefenceTask) -> list[ModelRows]:
    """Return every model's rows, drawn without replacement, by its bit and seed."""
    group, settings = task.split.groups[0], task.settings
    return [_hand(group, int(b), seed, settings) for b, seed in zip(task.bits, task.seeds, strict=True)]


def _hand(group: Bytes, b: int, seed: int, settings: Settings) -> ModelRows:
    rng = np.random.default_rng([seed, 1])
    mine, others = rng.permutation(np.flatnonzero(group == b)), rng.permutation(np.flatnonzero(group != b))
    n, m = sizes(len(mine), len(others), settings)
    pure_n, pure_m = round(settings.purity * n), round(settings.purity * m)
    own = np.concatenate([mine[:pure_n], others[pure_m : pure_m + n - pure_n]])
    other = np.concatenate([others[:pure_m], mine[pure_n : pure_n + m - pure_m]])
    return ModelRows(own, other)


def sizes(mine: int, others: int, settings: Settings) -> tuple[int, int]:
    """Return the numbers of rows to train and to tune a model on; ValueError if the groups do not hold as many."""
    pure = settings.purity == 1
    # Two mixtures of size n use alpha n + (1 - alpha) n = n rows of each group.
    n = settings.rows or (mine if pure else min(mine, others))
    m = settings.other_rows or (others if pure else n)
    pure_n, pure_m = round(settings.purity * n), round(settings.purity * m)
    if pure_n + m - pure_m > mine or pure_m + n - pure_n > others:
        raise ValueError(f"{n} rows to train on and {m} to tune on cannot be drawn from groups of {mine} and {others}")
    return n, m


def derived(seeds: Sequence[int], stage: int) -> list[int]:
    """Return the seeds of a later stage: unrelated to the first's, and a function of each seed alone."""
    return [
        int.from_bytes(np.random.SeedSequence([seed, stage]).generate_state(4).tobytes(), "little") for seed in seeds
    ]
