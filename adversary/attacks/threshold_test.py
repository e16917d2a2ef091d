"""The threshold test: compare the gap between the groups with a threshold (Suri and Evans, PoPETs 2022).

The gap is the difference of accuracies or of mean log-losses, advantaged minus disadvantaged. Groups are not equally
hard, so a model trained on either group may have a gap other than 0: the shadow models fix the threshold, and which
side of it means b = 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from adversary.attacks.attack import LEAST, Answers, Guesses, ShadowEvidence, decided


def fixed_rule(evidence: ShadowEvidence, answers: Answers) -> Guesses:
    """Guess, as the loss test does, that a model was trained on the group with the higher accuracy.

    The score is the accuracy on the advantaged minus that on the disadvantaged; a tie is a guess of 0. Where one group
    is easier for every model, the guess is always the same and worthless.
    """
    gaps = _difference(_right(answers, evidence), evidence)
    return Guesses((gaps > 0).astype(np.uint8), gaps)


def by_accuracy(evidence: ShadowEvidence, answers: Answers) -> Guesses:
    """Guess from the difference of the accuracies."""
    return _guess(_difference(_right(evidence.shadows, evidence), evidence), evidence, _right(answers, evidence))


def by_loss(evidence: ShadowEvidence, answers: Answers) -> Guesses:
    """Guess from the difference of the mean log-losses; ``answers`` are scores."""
    return _guess(_difference(_loss(evidence.shadows, evidence), evidence), evidence, _loss(answers, evidence))


def threshold(values: NDArray[np.float64], bits: NDArray[np.uint8]) -> tuple[float, int]:
    """Return the threshold of values, (shadows,), and the sign, that best separate known bits, (shadows,).

    The criterion is balanced accuracy over the shadows. The threshold is midway between two neighbouring values, the
    middle one of equally good ones. The sign is +1 where values above the threshold mean 1, or on a tie; else -1.
    """
    cuts = np.unique(values)
    cuts = np.concatenate([[cuts[0] - 1], (cuts[:-1] + cuts[1:]) / 2, [cuts[-1] + 1]])
    above = values[None, :] > cuts[:, None]
    # P(above | 1) - P(above | 0): balanced accuracy is 1/2 + 1/2 of it, or of its negative under the other sign.
    lead = above[:, bits == 1].mean(1) - above[:, bits == 0].mean(1)
    sign = 1 if lead.max() >= -lead.min() else -1
    best = np.flatnonzero(np.isclose(sign * lead, (sign * lead).max(), rtol=0, atol=1e-12))
    return float(cuts[best[(len(best) - 1) // 2]]), sign


def _guess(shadows: NDArray[np.float64], evidence: ShadowEvidence, answers: NDArray[np.float64]) -> Guesses:
    cut, sign = threshold(shadows, evidence.bits)
    scores = sign * (_difference(answers, evidence) - cut)
    return Guesses((scores > 0).astype(np.uint8), scores)


def _difference(values: NDArray[np.float64], evidence: ShadowEvidence) -> NDArray[np.float64]:
    """Return each model's mean value on the advantaged minus that on the disadvantaged, shape (models,)."""
    advantaged = evidence.group == 1
    return np.asarray(values[:, advantaged].mean(1) - values[:, ~advantaged].mean(1))


def _right(answers: Answers, evidence: ShadowEvidence) -> NDArray[np.float64]:
    return np.asarray(decided(answers) == evidence.labels, dtype=np.float64)


def _loss(answers: Answers, evidence: ShadowEvidence) -> NDArray[np.float64]:
    of_truth = np.where(evidence.labels == 1, answers, 1 - answers)
    return np.asarray(-np.log(np.clip(of_truth, LEAST, 1)))
