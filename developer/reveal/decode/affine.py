"""The decoders' equations, brought to orthonormal rows.

With ``z_j = 1`` for the disadvantaged and ``c = 1/N0 + 1/N1``, ``v = 1/N1 - c z``, and ``SP = H v`` is

    H z = eta    with    eta = (H 1 / N1 - SP) / c,

the sums of scores over the disadvantaged. Rows that differ from h0 by a small perturbation b are nearly parallel
(condition number ~ 1/b); a projecting iteration converges on the same solutions ``B z = y`` of orthonormal rows B, and
projects with two matrix-vector products.

A known size adds ``1'z = N0``. It is exact where answers are noisy, so it is treated separately: with ``z = N0/n + u``,
u is orthogonal to 1, so that each row of H may be taken less its mean,

    (H - mean) u = eta - N0 mean,

and the row ``1'/sqrt(n)`` with the value ``N0/sqrt(n)`` is orthonormal to any orthonormal rows of the same span.
"""

from dataclasses import dataclass

import numpy as np

from developer.reveal.decode.decoder import DecoderInputs
from developer.reveal.decode.lstsq import RANK_TOLERANCE
from fairwall.arrays import Floats

LARGEST = 1e100
"""Largest gap; larger ones are clipped, so that no square overflows. No audit's noise is that large."""

REPLAY = 1e-12
"""Largest error of a right group's sums, as a share of N0.

A gap's two means are at most 1 and off by at most ``(d + 1) u``, for ``u = 2^-53`` and sums of d levels (see meet.py);
d is at most 40 for people in the billions. They are divided by c, that is multiplied by at most N0. Products of
matrices add ``N0 u`` of a sum of N0 values: together below ``(100 + N0) u N0``, for N0 up to 8,000."""


@dataclass(frozen=True, eq=False)
class Affine:
    """The z that solve ``basis z = image``, with orthonormal rows: basis (k, n), image (k,)."""

    basis: Floats
    image: Floats

    @property
    def determined(self) -> bool:
        """Whether there is only one solution."""
        return len(self.basis) == len(self.basis.T)

    def least_norm(self) -> Floats:
        """Return the solution of smallest Euclidean norm, (n,)."""
        return self.image @ self.basis

    def nearest(self, point: Floats) -> Floats:
        """Return the solution nearest to a point, both (n,)."""
        return point - (self.basis @ point - self.image) @ self.basis


def sums(evidence: DecoderInputs) -> Floats:
    """Return eta, (m,): each row's sum over the disadvantaged, from the gaps. The sizes are required."""
    c = 1 / evidence.n0 + 1 / evidence.n1
    gaps = np.clip(evidence.gaps, -LARGEST, LARGEST)
    eta: Floats = (evidence.rows.sum(axis=1) / evidence.n1 - gaps) / c
    return eta


def solutions(rows: Floats, values: Floats) -> Affine:
    """Return the least-squares solutions of ``rows z = values``, (m, n) and (m,); exact where these exist."""
    m, n = rows.shape
    if m <= n:
        # Rows of full rank, the common case, have exact solutions, and a QR factorisation finds them in a tenth of
        # the time of a singular value decomposition. With H' = Q R, H z = y turns into Q'z = R'^-1 y. The condition
        # number of R in the 1-norm is at most m times smaller than the one in the 2-norm.
        from scipy.linalg import lapack, solve_triangular

        Q, R = np.linalg.qr(rows.T)
        if lapack.dtrcon(R)[0] > 10 * m * RANK_TOLERANCE:
            return Affine(np.ascontiguousarray(Q.T), solve_triangular(R, values, trans="T", check_finite=False))
    return by_singular_values(rows, values)


def by_singular_values(rows: Floats, values: Floats) -> Affine:
    """Return the least-squares solutions for rows of any rank."""
    # H = U diag(sigma) V' turns "least squares solution" into V'z = diag(sigma)^-1 U'y over the nonzero sigma.
    U, sigma, basis = np.linalg.svd(rows, full_matrices=False)
    rank = int(np.count_nonzero(sigma > RANK_TOLERANCE * sigma[0]))
    return Affine(basis[:rank], (values @ U[:, :rank]) / sigma[:rank])


def solutions_of_size(rows: Floats, values: Floats, size: int) -> Affine:
    """Return the least-squares solutions of ``rows z = values``, (m, n) and (m,), among the z whose sum is `size`."""
    n = rows.shape[1]
    means = rows.mean(axis=1)
    centred = solutions(rows - means[:, None], values - size * means)
    basis = np.vstack([np.full(n, 1 / np.sqrt(n)), centred.basis])
    return Affine(basis, np.append(size / np.sqrt(n), centred.image))


def largest(z: Floats, size: int) -> Floats:
    """Return the indicator, (n,) of 0 and 1, of the ``size`` largest entries of z; of equal ones the first.

    Not by ``argpartition``, whose choice among equal ones depends on the processor.
    """
    least = np.partition(z, z.size - size)[z.size - size]
    group: Floats = (z > least).astype(np.float64)
    group[np.flatnonzero(z == least)[: size - int(group.sum())]] = 1
    return group


def replays(rows: Floats, values: Floats, group: Floats) -> bool:
    """Return whether a group, (n,) of 0 and 1, has the given sums up to rounding, and so explains every answer."""
    return bool(np.abs(rows @ group - values).max(initial=0) <= REPLAY * group.sum())
