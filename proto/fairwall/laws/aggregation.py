"""Sample and aggregate (Nissim, Raskhodnikova, Smith, STOC 2007): the noise on a mean over blocks, and its price.

A mean over k blocks, of which one flip touches one, moves by 1/k of that block's move. For m models Laplace
noise of scale m/(k epsilon) on each mean covers moves of 1 of the block's gap.

**A block's largest move.** A gap is 0 in a block that lacks a group. With two blocks or more, the larger group
has at least the n/2 people that fill a block. Let the deal put only such people into one; the flip of one of them makes
a group of one, and with their prediction 1 and all others' 0 the gap goes from 0 to 1 or -1. All models can do so at
once: the loss is epsilon, for all counts and the worst deal (deals are independent of A, so that the loss is taken
given the deal, which may be public). A single block is everybody: no group in it is empty, before or after, and it
moves by the local sensitivity at most.

An absolute gap is the absolute value of the noisy mean. Its distribution depends on |mean| alone; the log-ratio of two
such is largest at 0, with the difference of the two |mean| over the scale: hence the same with the absolute gap's own
sensitivity.
"""

import math

from fairwall.laws.calibration import require_batch
from fairwall.laws.noise import Laplace
from fairwall.laws.sensitivity import local_sensitivity

BLOCK_SIZE = 32
"""Default number of people per block, approximately."""


def block_count(people: int, block_size: int = BLOCK_SIZE) -> int:
    """Return k, the public number of blocks, at least 1, for a smallest stratum of `people` people."""
    return max(1, people // block_size)


def aggregate_law(blocks: int, queries: int, epsilon: float) -> Laplace:
    """Return the noise on each model's mean over the blocks; public."""
    require_batch(queries, epsilon)
    return Laplace(queries / (blocks * epsilon))


def aggregate_loss(
    metric: str,
    n0: int,
    n1: int,
    queries: int,
    epsilon: float,
    block_size: int = BLOCK_SIZE,
    minimum_group: int = 1,
) -> float:
    """Return the privacy loss of `aggregate_law` for these counts, at the worst deal and predictions.

    For a metric with one part. At most epsilon; 0 where there are no neighbours. `minimum_group` says nothing about
    members of one block, and the noise does not depend on it.
    """
    blocks = block_count(n0 + n1, block_size)
    scale = aggregate_law(blocks, queries, epsilon).scale
    change = local_sensitivity(metric, n0, n1, minimum_group=minimum_group)
    if change == 0:
        return 0.0
    return queries * (change if blocks == 1 else 1 / blocks) / scale if scale else math.inf
