"""What an attack knows, and what it says.

The game: a bit b is flipped, a model is trained on G_b, G_0 being the disadvantaged and G_1 the advantaged, and the
attack reads the model's answers at probes. It may also read the answers that models of known bits gave at the same
probes: shadow models, trained by the adversary on rows of its own.

All attacks read one set of answers about one set of probes, so that trying a further one asks nothing more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Answers = NDArray[np.float64]
"""What M models answered about the probes, shape (M, probes): scores in [0, 1], or labels 0 and 1."""

Form = Literal["labels", "scores"]
"""What a victim answers with."""


LEAST = 1e-6
"""Scores are answered in finite precision: what is nearer to 0 or 1 is as good as certain."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the adversary knows of its own: about the probes, and from its shadow models.

    Attributes
    ----------
    labels : (probes,), 0 or 1, the true ones.
    group : (probes,), 1 = advantaged.
    bits : (shadows,), 0 or 1, what each shadow model was trained on; there may be none.
    shadows : (shadows, probes), their scores in [0, 1].
    seed : at least 0; an attack that draws something draws it from here.
    """

    labels: NDArray[np.uint8]
    group: NDArray[np.uint8]
    bits: NDArray[np.uint8]
    shadows: Answers
    seed: int = 0

    def __post_init__(self) -> None:
        if self.group.shape != self.labels.shape or self.shadows.shape != (len(self.bits), len(self.labels)):
            raise ValueError("labels and group have one entry per probe, and every shadow has a bit and its answers")
        if not 0 < int(self.group.sum()) < len(self.group):
            raise ValueError("an attack needs probes of both groups")


@dataclass(frozen=True, eq=False)
class Guesses:
    """What an attack says of V victims.

    Attributes
    ----------
    bits : (V,), the guesses.
    scores : (V,), the larger the more it speaks for b = 1; for a victim by itself, of no common unit.
    """

    bits: NDArray[np.uint8]
    scores: NDArray[np.float64]


@dataclass(frozen=True)
class Attack:
    """An attack, and what it cannot do without.

    Attributes
    ----------
    read : from the evidence and the victims' answers to guesses about them.
    needs : "scores" where labels do not do; what needs labels makes them of scores itself.
    shadows : whether it needs shadow models of both bits.
    """

    read: Callable[[Evidence, Answers], Guesses]
    needs: Form
    shadows: bool

    def guess(self, evidence: Evidence, answers: Answers, form: Form) -> Guesses:
        """Guess the bits of V victims; each guess depends on that victim's answers alone, (V, probes)."""
        if self.needs == "scores" and form == "labels":
            raise ValueError("the attack reads scores, and the victims answer labels only")
        if answers.ndim != 2 or answers.shape[1] != len(evidence.labels):
            raise ValueError(f"there are {len(evidence.labels)} probes, and answers of shape {answers.shape}")
        if self.shadows and len(np.unique(evidence.bits)) < 2:
            raise ValueError("the attack needs shadow models of both bits")
        return self.read(evidence, answers)


def decided(answers: Answers) -> Answers:
    """Turn scores into labels at the threshold 1/2; labels stay what they are."""
    return np.asarray(answers >= 0.5, dtype=np.float64)


def log_odds(scores: Answers) -> Answers:
    """Turn scores into logits."""
    inside = np.clip(scores, LEAST, 1 - LEAST)
    return np.asarray(np.log(inside) - np.log1p(-inside))
