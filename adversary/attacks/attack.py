"""The interface of a distribution-inference attack: its evidence, the victims' answers, and its guesses.

The game: a bit b is flipped, a model is trained on G_b, G_0 being the disadvantaged and G_1 the advantaged, and the
attack reads the model's answers at probes. It may also read the answers at the same probes of shadow models, which the
adversary trained on rows of its own and whose bits it knows.

All attacks read one set of answers about one set of probes, so a further attack costs no further query.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fairwall.arrays import Bytes, Floats

Answers = Floats
"""The answers of M models about the probes, shape (M, probes): scores in [0, 1], or labels 0 and 1."""

Form = Literal["labels", "scores"]
"""The kind of answer that a victim gives."""


LEAST = 1e-6
"""Distance from 0 and 1 to which scores are clipped, since scores have finite precision."""


@dataclass(frozen=True, eq=False)
class ShadowEvidence:
    """The adversary's knowledge about the probes and from its shadow models.

    Attributes
    ----------
    labels : (probes,), 0 or 1, the true labels.
    group : (probes,), 1 = advantaged.
    bits : (shadows,), 0 or 1, the bit that each shadow model was trained on; may be empty.
    shadows : (shadows, probes), the shadow models' scores.
    seed : at least 0, seeds the attack's random draws.
    """

    labels: Bytes
    group: Bytes
    bits: Bytes
    shadows: Answers
    seed: int = 0

    def __post_init__(self) -> None:
        if self.group.shape != self.labels.shape or self.shadows.shape != (len(self.bits), len(self.labels)):
            raise ValueError("labels and group have one entry per probe, and every shadow has a bit and its answers")
        if not 0 < int(self.group.sum()) < len(self.group):
            raise ValueError("an attack needs probes of both groups")


@dataclass(frozen=True, eq=False)
class Guesses:
    """An attack's guesses about V victims.

    bits : (V,), the guessed bits.
    scores : (V,), larger means that b = 1 is likelier; not comparable between attacks.
    """

    bits: Bytes
    scores: Floats


@dataclass(frozen=True)
class Attack:
    """An attack and its requirements.

    read : maps the evidence and the victims' answers to guesses.
    needs : "scores" where labels do not suffice; an attack that needs labels rounds scores itself.
    shadows : whether shadow models of both bits are needed.
    """

    read: Callable[[ShadowEvidence, Answers], Guesses]
    needs: Form
    shadows: bool

    def guess(self, evidence: ShadowEvidence, answers: Answers, form: Form) -> Guesses:
        """Return guesses of V victims' bits; each depends on that victim's answers, a row of (V, probes), alone."""
        if self.needs == "scores" and form == "labels":
            raise ValueError("the attack reads scores, and the victims answer labels only")
        if answers.ndim != 2 or answers.shape[1] != len(evidence.labels):
            raise ValueError(f"there are {len(evidence.labels)} probes, and answers of shape {answers.shape}")
        if self.shadows and len(np.unique(evidence.bits)) < 2:
            raise ValueError("the attack needs shadow models of both bits")
        return self.read(evidence, answers)


def decided(answers: Answers) -> Answers:
    """Return labels: scores cut at the threshold 1/2; labels stay unchanged."""
    return np.asarray(answers >= 0.5, dtype=np.float64)


def log_odds(scores: Answers) -> Answers:
    """Return the logits of scores, clipped at `LEAST`."""
    inside = np.clip(scores, LEAST, 1 - LEAST)
    return np.asarray(np.log(inside) - np.log1p(-inside))
