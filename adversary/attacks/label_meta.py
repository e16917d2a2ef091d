"""The meta-classifier on hard labels: what an adversary can do where a model answers yes or no."""

from __future__ import annotations

from adversary.attacks.attack import Answers, Evidence, Guesses, decided
from adversary.attacks.meta import meta_classifier


def by_labels(evidence: Evidence, answers: Answers) -> Guesses:
    """Guess by a meta-classifier."""
    return meta_classifier(evidence, decided(evidence.shadows), decided(answers))
