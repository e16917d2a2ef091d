"""Basis pursuit: compressed sensing by least l1 norm (Hamman, Chen, Dutta, FAccT 2023, equation 5, Theorem 2).

Write ``v = r - s``, where r is ``1/N1`` everywhere and s is ``c = 1/N0 + 1/N1`` at the disadvantaged and 0 elsewhere.
Where few people are disadvantaged, s is sparse, and from ``SP = H v = H r - H s``

    H r - SP = H s.

(The paper's Algorithm 2 and equation 7 have ``SP - H r`` on the left. By its own ``v = r - s`` that is ``-H s``, and
would recover ``-s``, in which nobody is above the threshold.)

The smallest l1 norm among the solutions finds s from fewer than n answers. The unknown used is ``z = s / c``, with
entries 0 and 1. As in the paper, z has no sign constraint and its sum is not used.

The solver is the splitting of Douglas and Rachford (Lions, Mercier, SIAM J. Numer. Anal. 1979): from any w repeat

    z = soft(w, 1),    p = the solution nearest to 2 z - w,    w += RELAXATION (p - z).

Then p - z vanishes, and z is optimal, with ``w - z`` a subgradient of ``|z|_1``. Many digits take long, but the support
S of z and its signs appear soon. Given these, two small linear systems suffice: z solves the equations on S, and is
optimal if some combination ``g = B'y`` of the rows has ``g = sign(z)`` on S and ``|g| <= 1`` elsewhere, for then
``|z'|_1 >= g z' = y B z' = y B z = g z = |z|_1`` for every solution z'.
"""

import numpy as np

from developer.reveal.decode.affine import Affine, solutions, sums
from developer.reveal.decode.decoder import DecoderInputs
from fairwall.arrays import Floats

RELAXATION = 1.6
"""Relaxation; anything in (0, 2) converges, and this and 1.9 took about two thirds of the steps of 1 (measured)."""

STEPS_MAX = 5000
FIRST_CHECK = 40
CHECK_GROWTH = 1.25
"""Growth of the steps between checks, since a check costs many steps."""

SLACK = 1e-9
"""Largest error in a proof of optimality."""

PATIENCE, CLOSE = 1000, 1e-4
"""Number of steps after which a step this short, beside entries of size 1, ends the iteration without a proof.

A proof may take long where a little noise makes many entries tiny. z is rounded to 0 or 1 afterwards, for which four
digits suffice (measured: z off by at most 0.002, in a third of the time or less, for n = 1,000 and m = 400)."""


def decode(evidence: DecoderInputs) -> Floats:
    """Estimate v with s of least l1 norm among the least-squares solutions of ``H s = H r - SP``.

    With exact gaps, or fewer rows than people in general position, the least-squares solutions are exact, and this is
    equation 5. With full column rank there is only one, and this is least squares: the constraint of equation 5 would
    leave no choice or, with noise, no solution. Where the iteration ends without a proof, the estimate explains the
    answers as well as any, but its norm is only nearly the least.

    The sizes are required; the noise distribution and the features are not used.
    """
    found = solutions(evidence.rows, sums(evidence))
    z = found.least_norm() if found.determined else _basis_pursuit(found)
    return 1 / evidence.n1 - (1 / evidence.n0 + 1 / evidence.n1) * z


def _basis_pursuit(equations: Affine) -> Floats:
    """Return the solution of least l1 norm, (n,)."""
    # The l1 norm scales with z, so that noisy gaps of any size make the same problem. In units of the root mean
    # square of the image, a threshold of 1 took fewer steps than 3, or than the scales of other norms (measured).
    # Rows next to 0 make an image whose squares overflow.
    largest = np.abs(equations.image).max(initial=0.0)
    if largest == 0:
        return equations.least_norm()
    unit = float(largest * np.sqrt(np.mean((equations.image / largest) ** 2)))
    scaled = Affine(equations.basis, equations.image / unit)
    w = scaled.least_norm()
    check = FIRST_CHECK
    for step in range(1, STEPS_MAX + 1):
        subgradient = np.clip(w, -1, 1)
        z = w - subgradient
        p = scaled.nearest(z - subgradient)
        if step == check:
            proved = _proved(scaled, z, subgradient)
            if proved is not None:
                return unit * proved
            if step >= PATIENCE and np.abs(p - z).max() < CLOSE:
                break
            check = int(check * CHECK_GROWTH)
        w += RELAXATION * (p - z)
    return unit * p


def _proved(equations: Affine, z: Floats, subgradient: Floats) -> Floats | None:
    """Return the optimal solution with the support and signs of z, (n,), if it can be proved optimal."""
    from scipy.linalg import solve_triangular

    basis, image = equations.basis, equations.image
    support = np.flatnonzero(z)
    if not 0 < support.size <= image.size:
        return None
    Q, R = np.linalg.qr(basis[:, support])
    diagonal = np.abs(R.diagonal())
    if diagonal.min() <= SLACK * diagonal.max():
        return None
    exact = np.zeros_like(z)
    exact[support] = solve_triangular(R, image @ Q)
    signs = np.sign(z[support])
    if (np.sign(exact[support]) != signs).any() or np.abs(basis @ exact - image).max() > SLACK * np.abs(image).max():
        return None
    y = basis @ subgradient
    y += Q @ solve_triangular(R, signs - y @ basis[:, support], trans="T")
    return exact if np.abs(y @ basis).max() <= 1 + SLACK else None
