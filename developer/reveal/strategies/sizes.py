"""The size query (Hamman, Chen, Dutta, FAccT 2023, Remark 4): one answer reveals the sizes of both groups."""

import numpy as np

from developer.reveal.strategies.strategy import Auditor
from fairwall.arrays import Floats


def alone(n: int, person: int) -> Floats:
    """Return the row, (n,), that accepts one person only."""
    row = np.zeros(n)
    row[person] = 1
    return row


def ask_sizes(auditor: Auditor, n: int) -> tuple[int, int]:
    """Send the size query about the first person and return N0 and N1."""
    return group_sizes(auditor.size(alone(n, 0)), n)


def group_sizes(gap: float, n: int) -> tuple[int, int]:
    """Return the group sizes, N0 and N1, from the gap of a row that accepts one of n >= 2 people only.

    The exact gap is ``1/N1`` if that person is advantaged and ``-1/N0`` if not. The nearest of these 2 (n - 1) values
    is taken: right for an exact answer, and the most likely one under any symmetric unimodal noise.
    """
    size = np.arange(1, n)
    gaps = np.concatenate([1 / size, -1 / size])
    own = int(np.argmin(np.abs(gaps - gap)))
    return (n - 1 - own, own + 1) if own < n - 1 else (own - n + 2, 2 * n - 2 - own)
