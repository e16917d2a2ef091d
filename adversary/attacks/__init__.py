"""The adversary's attacks, a file for each kind.

Not built, for the adversary of this game asks a black box and has no weights: meta-classifiers on a victim's weights
(Ganju et al., CCS 2018; Suri and Evans, 2022) would need them, and so would property unlearning (Stock et al., 2023)
and Inf2Guard (Noorbakhsh et al., 2024), which are defences that train against an attacker of that kind.
"""

from adversary.attacks.attack import Answers, Attack, Evidence, Form, Guesses
from adversary.attacks.kl import votes
from adversary.attacks.meta import by_labels, by_logits
from adversary.attacks.threshold_test import by_accuracy, by_loss, fixed_rule

ATTACKS: dict[str, Attack] = {
    "loss-test": Attack(fixed_rule, needs="labels", shadows=False),
    "threshold-test": Attack(by_accuracy, needs="labels", shadows=True),
    "threshold-test-loss": Attack(by_loss, needs="scores", shadows=True),
    "kl": Attack(votes, needs="scores", shadows=True),
    "label-meta": Attack(by_labels, needs="labels", shadows=True),
    "logit-meta": Attack(by_logits, needs="scores", shadows=True),
}

__all__ = ["ATTACKS", "Answers", "Attack", "Evidence", "Form", "Guesses"]
