"""Attacks that compare a victim with shadow models: a threshold test, the divergence, and a meta-classifier.

The threshold test (Suri and Evans, PoPETs 2022) compares the gap between the groups, a difference of accuracies or of
mean log-losses, advantaged minus disadvantaged, with a threshold. Groups are not equally hard, so a model trained on
either group may have a gap other than 0: the shadow models fix the threshold, and which side of it means b = 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from adversary.attacks.attack import LEAST, Answers, Guesses, ShadowEvidence, decided, log_odds
from fairwall.arrays import Bytes, Floats

# Inverse strengths of the penalty, for answers scaled to mean squared norm 1.
STRENGTHS = tuple(10.0**power for power in range(-2, 4))
FOLDS = 5
CUT = 3.0


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


def threshold(values: Floats, bits: Bytes) -> tuple[float, int]:
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


def _guess(shadows: Floats, evidence: ShadowEvidence, answers: Floats) -> Guesses:
    cut, sign = threshold(shadows, evidence.bits)
    scores = sign * (_difference(answers, evidence) - cut)
    return Guesses((scores > 0).astype(np.uint8), scores)


def _difference(values: Floats, evidence: ShadowEvidence) -> Floats:
    """Return each model's mean value on the advantaged minus that on the disadvantaged, shape (models,)."""
    advantaged = evidence.group == 1
    return np.asarray(values[:, advantaged].mean(1) - values[:, ~advantaged].mean(1))


def _right(answers: Answers, evidence: ShadowEvidence) -> Floats:
    return np.asarray(decided(answers) == evidence.labels, dtype=np.float64)


def _loss(answers: Answers, evidence: ShadowEvidence) -> Floats:
    of_truth = np.where(evidence.labels == 1, answers, 1 - answers)
    return np.asarray(-np.log(np.clip(of_truth, LEAST, 1)))


def votes(evidence: ShadowEvidence, answers: Answers) -> Guesses:
    """Guess the bit of the shadow models with closer answers (Suri et al., SaTML 2023); ``answers`` are scores.

    A score p at a probe is a Bernoulli distribution. The divergence of a shadow with scores q from a victim with scores
    p is the mean over the probes of ``KL(p, q) = p log(p / q) + (1 - p) log((1 - p) / (1 - q))``. Every pair of one
    shadow of each bit votes for the closer shadow. The term p log p is the same for both, so a vote needs only the
    cross-entropies, which are two matrix products. The score is the share of votes for 1, less 1/2.
    """
    crossed = _crossed(answers, evidence.shadows)
    zero, one = crossed[:, evidence.bits == 0], crossed[:, evidence.bits == 1]
    nearer = (one[:, :, None] < zero[:, None, :]).mean((1, 2)) + 0.5 * (one[:, :, None] == zero[:, None, :]).mean(
        (1, 2)
    )
    return Guesses((nearer > 0.5).astype(np.uint8), nearer - 0.5)


def _crossed(answers: Answers, shadows: Answers) -> Floats:
    """Return the mean cross-entropy of every shadow to every victim, shape (V, shadows)."""
    q = np.clip(shadows, LEAST, 1 - LEAST)
    return np.asarray(-(answers @ np.log(q).T + (1 - answers) @ np.log1p(-q).T) / answers.shape[1])


def by_labels(evidence: ShadowEvidence, answers: Answers) -> Guesses:
    """Guess from hard labels, for models that answer only yes or no."""
    return meta_classifier(evidence, decided(evidence.shadows), decided(answers))


def by_logits(evidence: ShadowEvidence, answers: Answers) -> Guesses:
    """Guess from clipped logits; ``answers`` are scores.

    The logits of a nearly certain network (5 and more, with large spreads) depend on its training rows more than on
    their group, and all shadows have the same table. So logits are clipped at -3 and 3, scores of 0.05 and 0.95. On
    Adult with 4,000 rows per model (four splits; the cut was chosen on two of them) 80 of 80 guesses are then right,
    and 70 without the cut; with all rows of a half, 199 of 200 either way.
    """
    return meta_classifier(evidence, *(np.clip(log_odds(of), -CUT, CUT) for of in (evidence.shadows, answers)))


def meta_classifier(evidence: ShadowEvidence, known: Floats, victims: Floats) -> Guesses:
    """Guess the victims, (V, probes), by logistic regression on the shadows, (shadows, probes); the logit is the score.

    The shadows are far fewer than the probes. With an L2 penalty the weights lie in the span of the shadows' answers
    (any part outside it changes no fitted logit and costs penalty): with the standardised answers Z = U S V^T, fitting
    on the coordinates U S, at most one per shadow, gives the same classifier.

    The penalty is the strongest with the fewest wrong guesses in cross-validation over the shadows. Log-loss would
    choose badly: the shadows share one table and are separated without error, so their log-loss keeps falling as the
    penalty falls, while a victim comes from another table and is classified worse and worse.
    """
    mean, spread = known.mean(0), known.std(0)
    # A probe at which all shadows answer the same gets weight 0.
    scale = np.divide(1, spread, out=np.zeros_like(spread), where=spread > 1e-9)
    fitted, further = (known - mean) * scale, (victims - mean) * scale
    _, sizes, directions = np.linalg.svd(fitted, full_matrices=False)
    directions = directions[sizes > 1e-9 * max(sizes[0], 1e-300)]
    if not len(directions):
        return Guesses(np.zeros(len(victims), np.uint8), np.zeros(len(victims)))
    size = np.sqrt(np.mean(np.sum(fitted**2, 1)))
    logits = _logits(fitted @ directions.T / size, evidence.bits, further @ directions.T / size, evidence.seed)
    return Guesses((logits > 0).astype(np.uint8), logits)


def _logits(known: Floats, bits: Bytes, victims: Floats, seed: int) -> Floats:
    # Imported here: scikit-learn takes seconds to load.
    from sklearn.linear_model import LogisticRegression

    def fit(rows: NDArray[np.intp], strength: float) -> LogisticRegression:
        model = LogisticRegression(C=strength, solver="newton-cholesky", tol=1e-8)
        return model.fit(known[rows], bits[rows])

    folds = _folds(bits, np.random.default_rng(seed))
    everyone = np.arange(len(bits))
    strength = STRENGTHS[0]
    if folds.max() > 0:
        wrong = []
        for tried in STRENGTHS:
            wrong.append(0)
            for fold in range(folds.max() + 1):
                out = everyone[folds == fold]
                logits = fit(everyone[folds != fold], tried).decision_function(known[out])
                wrong[-1] += int(np.sum((logits > 0) != (bits[out] == 1)))
        strength = STRENGTHS[int(np.argmin(wrong))]
    return np.asarray(fit(everyone, strength).decision_function(victims))


def _folds(bits: Bytes, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return the fold of each shadow, stratified by bit; a single fold where a bit has only one shadow."""
    folds = np.zeros(len(bits), np.intp)
    count = min(FOLDS, *np.bincount(bits, minlength=2).tolist())
    for bit in (0, 1):
        rows = rng.permutation(np.flatnonzero(bits == bit))
        folds[rows] = np.arange(len(rows)) % count
    return folds
