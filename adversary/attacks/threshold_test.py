"""The threshold test: on which side of a threshold a difference between the groups lies (Suri and Evans, PoPETs 2022).

The difference is of the accuracies, or of the mean log-losses, advantaged minus disadvantaged. Groups are not equally
hard, so that a model of neither bit need have the difference 0: shadow models say where the threshold lies, and which
side of it speaks for b = 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from adversary.attacks.attack import LEAST, Answers, Evidence, Guesses, decided


def fixed_rule(evidence: Evidence, answers: Answers) -> Guesses:
    """Guess, as the loss test does, that a model was trained on the group about which it is more often right.

    The score is the accuracy on the advantaged less that on the disadvantaged; a tie is a guess of 0. Where one group
    is the easier one whatever a model was trained on, the guess is always the same and tells nothing.
    """
    gaps = _difference(_right(answers, evidence), evidence)
    return Guesses((gaps > 0).astype(np.uint8), gaps)


def by_accuracy(evidence: Evidence, answers: Answers) -> Guesses:
    """Guess by the difference of the accuracies."""
    return _guess(_difference(_right(evidence.shadows, evidence), evidence), evidence, _right(answers, evidence))


def by_loss(evidence: Evidence, answers: Answers) -> Guesses:
    """Guess by the difference of the mean log-losses; ``answers`` are scores."""
    return _guess(_difference(_loss(evidence.shadows, evidence), evidence), evidence, _loss(answers, evidence))


def threshold(values: NDArray[np.float64], bits: NDArray[np.uint8]) -> tuple[float, int]:
    """Find the threshold of values, (shadows,), and the sign that tell known bits, (shadows,), apart best.

    The largest balanced accuracy over the shadows counts. The threshold is midway between two neighbouring values; of
    those that do equally well, the middle one. The sign is +1 where values above it speak for 1, or where the two signs
    do equally well; else -1.
    """
    cuts = np.unique(values)
    cuts = np.concatenate([[cuts[0] - 1], (cuts[:-1] + cuts[1:]) / 2, [cuts[-1] + 1]])
    above = values[None, :] > cuts[:, None]
    # P(above | 1) - P(above | 0): balanced accuracy is 1/2 + 1/2 of it, or of its negative under the other sign.
    lead = above[:, bits == 1].mean(1) - above[:, bits == 0].mean(1)
    sign = 1 if lead.max() >= -lead.min() else -1
    best = np.flatnonzero(np.isclose(sign * lead, (sign * lead).max(), rtol=0, atol=1e-12))
    return float(cuts[best[(len(best) - 1) // 2]]), sign


def _guess(shadows: NDArray[np.float64], evidence: Evidence, answers: NDArray[np.float64]) -> Guesses:
    cut, sign = threshold(shadows, evidence.bits)
    scores = sign * (_difference(answers, evidence) - cut)
    return Guesses((scores > 0).astype(np.uint8), scores)


def _difference(values: NDArray[np.float64], evidence: Evidence) -> NDArray[np.float64]:
    """Average each model's values over each group, advantaged minus disadvantaged; shape (models,)."""
    advantaged = evidence.group == 1
    return np.asarray(values[:, advantaged].mean(1) - values[:, ~advantaged].mean(1))


def _right(answers: Answers, evidence: Evidence) -> NDArray[np.float64]:
    return np.asarray(decided(answers) == evidence.labels, dtype=np.float64)


def _loss(answers: Answers, evidence: Evidence) -> NDArray[np.float64]:
    of_truth = np.where(evidence.labels == 1, answers, 1 - answers)
    return np.asarray(-np.log(np.clip(of_truth, LEAST, 1)))
