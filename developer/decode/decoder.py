"""What every decoder solves.

With ``v_j = 1/N1`` for the advantaged and ``-1/N0`` for the disadvantaged, the statistical parity gap of a
model with scores ``h`` is ``SP = h v`` (Hamman, Chen, Dutta, FAccT 2023, Theorem 1). A developer that asked
about the m rows of ``H`` and got the m gaps ``SP`` is left with ``SP = H v``, m equations in n unknowns.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Decoder = Callable[[NDArray[np.float64], NDArray[np.float64], int, int], NDArray[np.float64]]
"""``decode(rows, gaps, n0, n1)``: rows (m, n) in [0, 1], gaps (m,), the group sizes; to the estimate of v, (n,).

The sizes are 0 where the strategy never learnt them. The gaps may carry noise of any finite size: a decoder
neither raises nor warns for it, and gives back finite numbers.
"""
