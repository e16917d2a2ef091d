"""Reveal from superincreasing weights: blocks of people, each with weights 1, 2, 4, ... in one row.

An answer reveals a block's sum, whose binary digits are its people's attributes. The answers' precision limits a block:
about 50 people in a float64. The last people follow from the number of the disadvantaged.
"""

import numpy as np

from developer.reveal.strategies.strategy import Reveal, StrategyInputs
from developer.reveal.strategies.sums import Sums

LONGEST_BLOCK = 53


def play(inputs: StrategyInputs) -> Reveal:
    """Reveal everyone, block by block, with at most ``inputs.queries`` queries."""
    sums = Sums(inputs)
    share = np.full(inputs.people, np.nan)
    share[sums.anchors] = 0
    while sums.open:
        unknown = np.flatnonzero(np.isnan(share))
        if len(sums.worlds) > 1:
            # If an answer makes sense for two sizes, another choice of people will separate the sizes.
            unknown = inputs.rng.permutation(unknown)
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
        # The rest of N0 is spread evenly over the remaining people.
        share[left] = (sums.n0 - np.nansum(share)) / left.sum()
    return sums.reveal(share)
