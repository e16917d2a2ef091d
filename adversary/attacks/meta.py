"""A meta-classifier: logistic regression from a model's answers at the probes, labels or logits, to its bit.

It is trained on the shadow models, of which there are far fewer than probes. With an L2 penalty the weights lie in the
span of the shadows' answers (any part outside it changes no fitted logit and costs penalty): with the standardised
answers Z = U S V^T, fitting on the coordinates U S, at most one a shadow, gives the same classifier.

The penalty is the strongest with the fewest wrong guesses in cross-validation over the shadows. Not the one with the
least log-loss: the shadows share one table and are told apart without an error, so that their log-loss falls and falls
with the penalty, while a victim comes from another table and is told apart the worse.

How certain a network is where it is nearly certain (logits of 5 and more, with spreads to match) depends on the rows it
saw more than on their group, and the shadows all saw the same table. So logits are cut off at -3 and 3, scores of 0.05
and 0.95. On Adult with 4,000 rows a model (four splits, two of which the cut was chosen on) 80 of 80 guesses are right
then, and 70 without; with all rows of a half, 199 of 200 either way.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from adversary.attacks.attack import Answers, Evidence, Guesses, decided, log_odds

# Inverse strengths of the penalty, each for answers that are scaled to mean squared norm 1.
STRENGTHS = tuple(10.0**power for power in range(-2, 4))
FOLDS = 5
CUT = 3.0


def by_labels(evidence: Evidence, answers: Answers) -> Guesses:
    """Guess by hard labels: what an adversary can do where a model answers yes or no."""
    return meta_classifier(evidence, decided(evidence.shadows), decided(answers))


def by_logits(evidence: Evidence, answers: Answers) -> Guesses:
    """Guess by logits; ``answers`` are scores."""
    return meta_classifier(evidence, *(np.clip(log_odds(of), -CUT, CUT) for of in (evidence.shadows, answers)))


def meta_classifier(evidence: Evidence, known: NDArray[np.float64], asked: NDArray[np.float64]) -> Guesses:
    """Train on the shadows and guess; the score is the logit.

    Parameters
    ----------
    evidence : whose bits and seed count.
    known : (shadows, probes), what is read from the shadows' answers.
    asked : (V, probes), what is read from the victims'.
    """
    mean, spread = known.mean(0), known.std(0)
    # A probe that all shadows answer alike says nothing, whatever a victim answers.
    scale = np.divide(1, spread, out=np.zeros_like(spread), where=spread > 1e-9)
    fitted, further = (known - mean) * scale, (asked - mean) * scale
    _, sizes, directions = np.linalg.svd(fitted, full_matrices=False)
    directions = directions[sizes > 1e-9 * max(sizes[0], 1e-300)]
    if not len(directions):
        return Guesses(np.zeros(len(asked), np.uint8), np.zeros(len(asked)))
    size = np.sqrt(np.mean(np.sum(fitted**2, 1)))
    logits = _logits(fitted @ directions.T / size, evidence.bits, further @ directions.T / size, evidence.seed)
    return Guesses((logits > 0).astype(np.uint8), logits)


def _logits(
    known: NDArray[np.float64], bits: NDArray[np.uint8], asked: NDArray[np.float64], seed: int
) -> NDArray[np.float64]:
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
    return np.asarray(fit(everyone, strength).decision_function(asked))


def _folds(bits: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.intp]:
    """Deal the shadows of each bit into folds of nearly one size; one fold where a bit has a single shadow."""
    folds = np.zeros(len(bits), np.intp)
    count = min(FOLDS, *np.bincount(bits, minlength=2).tolist())
    for bit in (0, 1):
        rows = rng.permutation(np.flatnonzero(bits == bit))
        folds[rows] = np.arange(len(rows)) % count
    return folds
