"""Reveal from superincreasing weights: blocks of people, each with weights 1, 2, 4, ... in one row.

An answer tells a block's sum, whose binary digits are its people. How long a block may be is a matter of the answers'
precision: about 50 people in a float64. The last people follow from the number of the disadvantaged.
"""

import numpy as np
from numpy.typing import NDArray

from developer.reveal.strategies.strategy import Hand, Reveal
from developer.reveal.strategies.sums import Digit, Layout, Sums

LONGEST_BLOCK = 53


def play(hand: Hand) -> Reveal:
    """Reveal everyone, block by block, with at most the hand's queries."""
    sums = Sums(hand)
    share = np.full(hand.people, np.nan)
    share[sums.anchors] = 0
    while sums.open:
        unknown = np.flatnonzero(np.isnan(share))
        if len(sums.worlds) > 1:
            # Should two sizes give an answer meaning, another choice of people will not.
            unknown = hand.rng.permutation(unknown)
        if sums.n0 is not None:
            remaining = sums.n0 - int(np.nansum(share))
            if remaining in (0, unknown.size):
                break
        block = None if sums.stuck else _block(sums, unknown)
        if block is None:
            if sums.stuck or not sums.relax():
                if len(sums.worlds) == 1:
                    break
                sums.probe()
            continue
        values = sums.ask(block)
        if values is not None:
            share[[int(digit.people[0]) for digit in block.digits]] = values
            if sums.absolute:
                sums.anchors = np.flatnonzero(share == 0)
    return sums.reveal(rest(sums, share))


def rest(sums: Sums, share: NDArray[np.float64]) -> NDArray[np.float64]:
    """Share out what is left of N0 among the people who are left."""
    unknown = np.isnan(share)
    if sums.n0 is None or not unknown.any():
        return share
    return np.where(unknown, (sums.n0 - np.nansum(share)) / unknown.sum(), share)


def _block(sums: Sums, unknown: NDArray[np.intp]) -> Layout | None:
    """Find the longest block that one answer tells."""
    best, shortest, longest = None, 1, min(LONGEST_BLOCK, unknown.size)
    while shortest <= longest:
        length = (shortest + longest) // 2
        layout = sums.fit([Digit(unknown[i : i + 1], np.ones(1, np.int64), 0, 1) for i in range(length)])
        if layout is None:
            longest = length - 1
        else:
            best, shortest = layout, length + 1
    return best
