"""Least squares: the linear system of Theorem 1 (Hamman, Chen, Dutta, FAccT 2023)."""

import numpy as np
from numpy.typing import NDArray

from developer.reveal.decode.decoder import Evidence

RANK_TOLERANCE = 1e-12
"""Directions weaker than this beside the strongest one carry rounding errors, not answers."""


def decode(evidence: Evidence) -> NDArray[np.float64]:
    """Solve ``SP = H v`` in the least squares sense, by the solution of least Euclidean norm.

    It is v itself where the rows have rank n and the gaps are exact. Neither the sizes nor the law of the noise is
    looked at.
    """
    # Loaded here because most runs never decode.
    from scipy.linalg import lstsq

    # gelsy (a pivoted QR factorisation completed from the right) gives the same least-norm solution as the
    # usual singular value decomposition in a fraction of its time.
    v: NDArray[np.float64] = lstsq(
        evidence.rows, evidence.gaps, cond=RANK_TOLERANCE, check_finite=False, lapack_driver="gelsy"
    )[0]
    return v
