"""Reveal from a random binary matrix (Hamman, Chen, Dutta, FAccT 2023, Theorem 2 and the text after Remark 4).

Every model decides by coin tosses: the best of sensing matrices, and the worst of models.
"""

import numpy as np
from numpy.typing import NDArray

from developer.reveal.strategies.compressed import reveal_from_rows
from developer.reveal.strategies.strategy import Hand, Reveal


def play(hand: Hand) -> Reveal:
    """Reveal everyone from random decisions."""
    return reveal_from_rows(hand, rows)


def rows(hand: Hand) -> NDArray[np.float64]:
    """Toss a coin for every entry; (m, n) of 0 and 1."""
    return hand.rng.integers(0, 2, (hand.queries, hand.people)).astype(np.float64)
