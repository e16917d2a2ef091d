"""Reveal from compressed sensing (Hamman, Chen, Dutta, FAccT 2023, Theorem 2): what its choices of rows share."""

import sys
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from developer.decode import l1
from developer.decode.decoder import Evidence
from developer.reveal.sizes import ask_sizes
from developer.reveal.strategy import Hand, Reveal, everyone


def counts(_n: int) -> range:
    """Give the numbers of queries there can be: any."""
    return range(1, sys.maxsize)


def reveal_from_rows(hand: Hand, rows: Callable[[Hand], NDArray[np.float64]]) -> Reveal:
    """Ask for the sizes and for the gaps of the rows; decode; find the disadvantaged.

    ``s = r - v`` is ``1/N0 + 1/N1`` at the disadvantaged and 0 elsewhere; we split in the middle.

    Parameters
    ----------
    hand : what we play with.
    rows : makes the rows, (m, n), when their time has come.
    """
    # First, because the rows may have to wait for h0, and meanwhile this answer can be on its way.
    n0, n1 = ask_sizes(hand.auditor, hand.people)
    H = rows(hand)
    gaps = hand.auditor.gaps(H)
    decode = hand.decode or l1.decode
    evidence = Evidence(H, gaps, n0, n1, rng=hand.rng)
    s = 1 / n1 - decode(evidence)
    middle = 0.5 * (1 / n1 + 1 / n0)
    alone = everyone(s <= middle, s)
    if hand.llr is None:
        return alone
    s = 1 / n1 - decode(replace(evidence, llr=hand.llr()))
    return replace(everyone(s <= middle, s), from_answers=alone.guess)
