"""What every decoder solves.

With ``v_j = 1/N1`` for the advantaged and ``-1/N0`` for the disadvantaged, the statistical parity gap of a
model with scores ``h`` is ``SP = h v`` (Hamman, Chen, Dutta, FAccT 2023, Theorem 1). A developer that asked
about the m rows of ``H`` and got the m gaps ``SP`` is left with ``SP = H v``, m equations in n unknowns; of a
v that takes two values only, and with noise whose law is public.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairwall.laws.noise import Law


@dataclass(frozen=True, eq=False)
class Evidence:
    """All that a decoder may look at: what the developer asked, was told, and knows from public sources.

    Attributes
    ----------
    rows : (m, n), the scores asked about, each in [0, 1].
    gaps : (m,), the gaps answered. They may carry noise of any finite size.
    n0, n1 : the sizes of the disadvantaged and the advantaged group; both 0 where the strategy never learnt them.
    noise : the law of each gap's error, at the sizes above; None where answers are exact.
    llr : (n,), what people's features alone say about them: the log-likelihood ratio of being disadvantaged to being
        advantaged, from a public sample; None without one.
    rng : the source of a decoder's own draws.
    """

    rows: NDArray[np.float64]
    gaps: NDArray[np.float64]
    n0: int
    n1: int
    noise: Law | None = None
    llr: NDArray[np.float64] | None = None
    rng: np.random.Generator | None = None


Decoder = Callable[[Evidence], NDArray[np.float64]]
"""To the estimate of v, (n,): finite, without raising or warning, whatever finite gaps are given.

Where the sizes are known, ``v = 1/N1 - c z`` with ``c = 1/N0 + 1/N1``, and z above 1/2 means that the guess is
"disadvantaged". A decoder that has a posterior probability p_j gives z at even odds, ``z / (1 - z) = (p / (1 - p)) *
(N1 / N0)``: then guessing at 1/2 is what maximises the expected balanced accuracy, by which a guess is measured.
"""
