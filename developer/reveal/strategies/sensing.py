"""Attribute-Reveal with m << n (Hamman, Chen, Dutta, FAccT 2023, Algorithm 2).

The rows are the base model's scores with small bounded noise, as Theorem 3 allows: models that anybody might
have trained. The algorithm's line ``eta = SP - H r`` has the wrong sign; see developer/decode/l1.py.
"""

import numpy as np
from numpy.typing import NDArray

from developer.reveal.strategies.compressed import reveal_from_rows
from developer.reveal.strategies.strategy import Hand, Reveal


def play(hand: Hand) -> Reveal:
    """Reveal everyone from models close to h0."""
    return reveal_from_rows(hand, rows)


def rows(hand: Hand) -> NDArray[np.float64]:
    """Add Unif(-b, b) to every score of h0, and clip to [0, 1]; (m, n)."""
    b = hand.perturbation
    return np.clip(hand.base() + hand.rng.uniform(-b, b, (hand.queries, hand.people)), 0, 1)
