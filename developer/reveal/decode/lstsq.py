"""Least squares: the linear system of Theorem 1 (Hamman, Chen, Dutta, FAccT 2023)."""

from developer.reveal.decode.decoder import DecoderInputs
from fairwall.arrays import Floats

RANK_TOLERANCE = 1e-12
"""Relative strength of the weakest direction used; weaker ones carry rounding errors, not answers."""


def decode(evidence: DecoderInputs) -> Floats:
    """Return the least-squares solution of ``SP = H v`` with the smallest norm; it needs neither sizes nor noise.

    It is v itself where the rows have rank n and the gaps are exact.
    """
    # Loaded here because most runs never decode.
    from scipy.linalg import lstsq

    # gelsy (a pivoted QR factorisation completed from the right) gives the same least-norm solution as the
    # usual singular value decomposition in a fraction of its time.
    v: Floats = lstsq(evidence.rows, evidence.gaps, cond=RANK_TOLERANCE, check_finite=False, lapack_driver="gelsy")[0]
    return v
