"""Reveal from superincreasing weights: blocks of people, each with weights 1, 2, 4, ... in one row.

An answer tells a block's sum, whose binary digits are its people. How long a block may be is a matter of the answers'
precision: about 50 people in a float64. The last people follow from the number of the disadvantaged.
"""

import numpy as np

from developer.reveal.strategies.strategy import Hand, Reveal
from developer.reveal.strategies.sums import Sums

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
        block = None if sums.stuck else sums.longest(unknown, LONGEST_BLOCK)
        if block is None:
            if sums.stuck or not sums.relax():
                if len(sums.worlds) == 1:
                    break
                sums.probe()
            continue
        layout, _ = block
        values = sums.ask(layout)
        if values is not None:
            share[[int(digit.people[0]) for digit in layout.digits]] = values
            if sums.absolute:
                sums.anchors = np.flatnonzero(share == 0)
    left = np.isnan(share)
    if sums.n0 is not None and left.any():
        # What is left of N0 is shared out among the people who are left.
        share[left] = (sums.n0 - np.nansum(share)) / left.sum()
    return sums.reveal(share)
