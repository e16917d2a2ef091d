"""The divergence attack: a victim gets the bit of the shadow models with closer answers (Suri et al., SaTML 2023).

A score p at a probe is a Bernoulli distribution. The divergence of a shadow with scores q from a victim with scores p
is the mean over the probes of

    KL(p, q) = p log(p / q) + (1 - p) log((1 - p) / (1 - q)).

Every pair of one shadow of each bit votes for the closer shadow. The term p log p is the same for both, so a vote needs
only the cross-entropies, which are two matrix products.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from adversary.attacks.attack import LEAST, Answers, Guesses, ShadowEvidence


def votes(evidence: ShadowEvidence, answers: Answers) -> Guesses:
    """Guess the bit with most votes; the score is the share of votes for 1, less 1/2. ``answers`` are scores."""
    crossed = _crossed(answers, evidence.shadows)
    zero, one = crossed[:, evidence.bits == 0], crossed[:, evidence.bits == 1]
    nearer = (one[:, :, None] < zero[:, None, :]).mean((1, 2)) + 0.5 * (one[:, :, None] == zero[:, None, :]).mean(
        (1, 2)
    )
    return Guesses((nearer > 0.5).astype(np.uint8), nearer - 0.5)


def _crossed(answers: Answers, shadows: Answers) -> NDArray[np.float64]:
    """Return the mean cross-entropy of every shadow to every victim, shape (V, shadows)."""
    q = np.clip(shadows, LEAST, 1 - LEAST)
    return np.asarray(-(answers @ np.log(q).T + (1 - answers) @ np.log1p(-q).T) / answers.shape[1])
