"""The adversary's attacks on the bits of the inference game, in one table.

Not implemented, because the adversary of this game asks a black box and has no weights: meta-classifiers on a victim's
weights (Ganju et al., CCS 2018; Suri and Evans, 2022), and the defences that train against an attacker of that kind,
property unlearning (Stock et al., 2023) and Inf2Guard (Noorbakhsh et al., 2024).
"""

from dataclasses import replace

import numpy as np

from adversary.attacks.attack import Answers, Attack, Form, Guesses, ShadowEvidence
from adversary.attacks.shadow_attacks import by_accuracy, by_labels, by_logits, by_loss, fixed_rule, votes
from fairwall.plugins import Plugin, Registry


def _checked(plugin: Plugin, attack: Attack) -> Attack:
    """Return a plug-in's attack, wrapped so that the shapes and values of its guesses are checked."""
    plugin.require(isinstance(attack, Attack), "is no Attack")

    def read(evidence: ShadowEvidence, answers: Answers) -> Guesses:
        found, victims = plugin.call(attack.read, evidence, answers), len(answers)
        plugin.require(isinstance(found, Guesses), "made no Guesses")
        bits, scores = np.asarray(found.bits), np.asarray(found.scores)
        plugin.require(
            bits.shape == (victims,) and np.isin(bits, (0, 1)).all(), f"its bits are not {victims} of 0 or 1"
        )
        fits = scores.shape == (victims,) and np.isfinite(scores).all()
        plugin.require(fits, f"its scores are not {victims} finite numbers")
        return Guesses(bits.astype(np.uint8), scores.astype(np.float64))

    return replace(attack, read=read)


def _elsewhere(_: str) -> Attack:
    """Return a placeholder for a plug-in's attack in a process that does not run it; its real needs are not known."""

    def read(evidence: ShadowEvidence, answers: Answers) -> Guesses:
        raise NotImplementedError

    return Attack(read, needs="labels", shadows=False)


ATTACKS: Registry[Attack] = Registry(
    "attacks",
    {
        "loss-test": Attack(fixed_rule, needs="labels", shadows=False),
        "threshold-test": Attack(by_accuracy, needs="labels", shadows=True),
        "threshold-test-loss": Attack(by_loss, needs="scores", shadows=True),
        "kl": Attack(votes, needs="scores", shadows=True),
        "label-meta": Attack(by_labels, needs="labels", shadows=True),
        "logit-meta": Attack(by_logits, needs="scores", shadows=True),
    },
    _checked,
    _elsewhere,
)

__all__ = ["ATTACKS", "Answers", "Attack", "Form", "Guesses", "ShadowEvidence"]
