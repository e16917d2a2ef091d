"""Reveal from a Gaussian matrix (Hamman, Chen, Dutta, FAccT 2023, sections 3.2.1 and 3.2.2).

Zero-mean Gaussian entries of variance 1/m are the usual sensing matrix, but no scores. Around 1/2 most of them
are, and the constant changes no gap: it adds ``sum v / 2 = 0``. The rest is clipped.
"""

import numpy as np
from numpy.typing import NDArray

from developer.reveal.strategies.compressed import reveal_from_rows
from developer.reveal.strategies.strategy import Hand, Reveal


def play(hand: Hand) -> Reveal:
    """Reveal everyone from Gaussian scores."""
    return reveal_from_rows(hand, rows)


def rows(hand: Hand) -> NDArray[np.float64]:
    """Draw every score from N(1/2, 1/m), and clip to [0, 1]; (m, n)."""
    m = hand.queries
    return np.clip(hand.rng.normal(0.5, m**-0.5, (m, hand.people)), 0, 1)
