"""The interface of a decoder, and the equations that all decoders solve.

With ``v_j = 1/N1`` for the advantaged and ``-1/N0`` for the disadvantaged, the statistical parity gap of a model with
scores ``h`` is ``SP = h v`` (Hamman, Chen, Dutta, FAccT 2023, Theorem 1). A developer that queried the m rows of ``H``
and got the m gaps ``SP`` has ``SP = H v``, m equations in n unknowns; v takes two values only, and the noise has a
public distribution.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fairwall.arrays import Floats
from fairwall.laws.noise.distributions import NoiseDistribution


@dataclass(frozen=True, eq=False)
class DecoderInputs:
    """The inputs of a decoder: the queries, their answers, and public knowledge.

    Attributes
    ----------
    rows : (m, n), the scores queried, each in [0, 1].
    gaps : (m,), the gaps answered, with noise of any finite size.
    n0, n1 : the sizes of the disadvantaged and the advantaged group; both 0 where unknown.
    noise : the distribution of each gap's error, at the sizes above; None where answers are exact.
    llr : (n,), the log-likelihood ratio of being disadvantaged to being advantaged by features alone, from a public
        sample; None without one.
    rng : the source of a decoder's random draws.
    """

    rows: Floats
    gaps: Floats
    n0: int
    n1: int
    noise: NoiseDistribution | None = None
    llr: Floats | None = None
    rng: np.random.Generator | None = None


Decoder = Callable[[DecoderInputs], Floats]
"""A function that returns an estimate of v, (n,): finite, without raising or warning, for any finite gaps.

Where the sizes are known, ``v = 1/N1 - c z`` with ``c = 1/N0 + 1/N1``, and z above 1/2 is the guess "disadvantaged". A
decoder that has a posterior probability p_j returns z at even odds, ``z / (1 - z) = (p / (1 - p)) * (N1 / N0)``: then
guessing at 1/2 maximises the expected balanced accuracy, the measure of a guess."""
