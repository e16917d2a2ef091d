"""Basis pursuit: compressed sensing by least l1 norm (Hamman, Chen, Dutta, FAccT 2023, equation 5, Theorem 2).

Write ``v = r - s``, where r is ``1/N1`` everywhere and s is ``c = 1/N0 + 1/N1`` at the disadvantaged and 0
elsewhere. Where few people are disadvantaged, s is sparse, and from ``SP = H v = H r - H s``

    eta = H r - SP = H s.

(The paper's Algorithm 2 and equation 7 have ``eta = SP - H r``. By its own ``v = r - s`` that is ``-H s``, and
would recover ``-s``, in which nobody is above the threshold.)

The smallest l1 norm among the solutions finds s from fewer than n answers. We look for ``z = s / c``, whose
entries are 0 and 1, so that the solvers' tolerances do not depend on n. As in the paper, z has no sign
constraint and its sum is not used.
"""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from developer.decode.decoder import Evidence
from developer.decode.lstsq import RANK_TOLERANCE

SMALL = 20_000
"""Entries of H up to which an interior point method is the quicker one (measured: n = 100, any m; not n = 1000)."""


def decode(evidence: Evidence) -> NDArray[np.float64]:
    """Estimate v with s of least l1 norm among the least squares solutions of ``eta = H s``.

    With exact gaps, or fewer rows than people in general position, the least squares solutions are the exact
    ones, and this is equation 5. With full column rank there is one of them, and this is least squares: the
    constraint of equation 5 would leave nothing to choose from or, with noise, nothing at all.

    Parameters
    ----------
    evidence : the sizes are needed; the law of the noise and the features are not looked at.

    Returns
    -------
    (n,), the estimate of v.
    """
    rows, gaps, n0, n1 = evidence.rows, evidence.gaps, evidence.n0, evidence.n1
    c = 1 / n0 + 1 / n1
    eta = (rows.sum(axis=1) / n1 - gaps) / c

    # H = U diag(sigma) V' turns "least squares solution of H z = eta" into V' z = diag(sigma)^-1 U' eta over the
    # nonzero sigma. These are the same z, but rows that differ from h0 by a small perturbation are nearly parallel
    # (condition number ~ 1/b), and orthonormal ones are what a first-order method converges on.
    U, sigma, basis = np.linalg.svd(rows, full_matrices=False)
    rank = int(np.count_nonzero(sigma > RANK_TOLERANCE * sigma[0]))
    basis = basis[:rank]
    image = (eta @ U[:, :rank]) / sigma[:rank]
    z = image @ basis if rank == rows.shape[1] else _basis_pursuit(basis, image)
    return 1 / n1 - c * z


def _basis_pursuit(basis: NDArray[np.float64], image: NDArray[np.float64]) -> NDArray[np.float64]:
    """Find the z of least l1 norm with ``basis z = image``.

    Parameters
    ----------
    basis : (k, n), orthonormal rows.
    image : (k,).

    Returns
    -------
    (n,); the z of least Euclidean norm where the solver finds nothing.
    """
    least_squares = image @ basis
    scale = np.abs(image).max(initial=0)
    if scale == 0:
        return least_squares

    import cvxpy  # takes half a second to load

    cp: Any = cvxpy  # partly typed
    z = cp.Variable(basis.shape[1])
    # The l1 norm scales with z: noisy gaps of any size make the same problem.
    problem = cp.Problem(cp.Minimize(cp.norm1(z)), [basis @ z == image / scale])
    solver = (
        {"solver": cp.CLARABEL, "direct_solve_method": "qdldl"}  # one thread
        if basis.size <= SMALL
        # z is rounded to 0 or 1 afterwards; four digits do.
        else {"solver": cp.SCS, "eps_abs": 1e-4, "eps_rel": 1e-4, "max_iters": 5000}
    )
    try:
        with warnings.catch_warnings():
            # A solution short of the tolerance is still the best guess there is.
            warnings.simplefilter("ignore")
            problem.solve(**solver)
    except cp.error.SolverError:
        return least_squares
    if z.value is None or not np.isfinite(z.value).all():
        return least_squares
    return np.asarray(z.value * scale)
