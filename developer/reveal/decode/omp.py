"""Orthogonal matching pursuit (Pati, Rezaiifar, Krishnaprasad, Asilomar 1993; Tropp, Gilbert, IEEE Trans. IT 2007).

A greedy decoder for ``B z = y`` in orthonormal rows (affine.py), one of which says that the sum of z is N0. It names
one person after the other as disadvantaged: the one whose column, scaled to norm 1, has the largest product with the
residual of y. Since z is not negative, only a positive product counts. The residual is then made orthogonal to all
columns chosen, which amounts to a new least squares fit of the coefficients.

A z of 0 and 1 allows two extensions. Once at least N0 people are named, those with the N0 largest coefficients are a
group that either reproduces every answer or not: the end is certain. Until then, naming more than N0 people does no
harm, since the wrong ones among them get the coefficient 0 as soon as all the right ones are named. For 100 people, 10
of them disadvantaged, and rows within 0.1 of h0, this found everybody in 39 of 40 trials with 35 answers, in 30 with
30. Where the disadvantaged are the majority, it names the advantaged.

Scikit-learn's ``orthogonal_mp`` also accepts negative products, and cannot check whether a group reproduces the
answers; importing it takes longer than a small game.
"""

from collections.abc import Callable

import numpy as np

from developer.reveal.decode.affine import largest, replays, solutions_of_size, sums
from developer.reveal.decode.decoder import DecoderInputs
from fairwall.arrays import Floats

DEPENDENT = 1e-8
"""Smallest norm of a column (of norm 1) outside the span of the chosen ones at which it is still added."""


def decode(evidence: DecoderInputs) -> Floats:
    """Estimate v from a group named greedily.

    Entries are 1/N1 and -1/N0 only where a group reproduces every answer; else they come from the coefficients of the
    first N0 people. The sizes are required; the noise distribution and the features are not used.
    """
    rows, n0, n1 = evidence.rows, evidence.n0, evidence.n1
    eta = sums(evidence)
    if n0 <= n1:
        z = _pursue(rows, eta, n0, lambda group: replays(rows, eta, group))
    else:
        z = 1 - _pursue(rows, rows.sum(axis=1) - eta, n1, lambda group: replays(rows, eta, 1 - group))
    return 1 / n1 - (1 / n0 + 1 / n1) * z


def _pursue(rows: Floats, values: Floats, size: int, replaying: Callable[[Floats], bool]) -> Floats:
    """Return the indicator, (n,), of ``size`` people who reproduce the answers, or else coefficients."""
    from scipy.linalg import solve_triangular

    equations = solutions_of_size(rows, values, size)
    k, n = equations.basis.shape
    norms = np.linalg.norm(equations.basis, axis=0)  # never 0: all are in the row of the size
    columns = equations.basis / norms
    named: list[int] = []
    # columns[:, named] = Q' R, and the coefficients solve R coefficients = projected.
    Q, R, projected = np.zeros((k, k)), np.zeros((k, k)), np.zeros(k)
    left = equations.image.copy()

    def coefficients() -> Floats:
        z, t = np.zeros(n), len(named)
        z[named] = solve_triangular(R[:t, :t], projected[:t]) / norms[named]
        return z

    estimate = None
    for t in range(k):
        products = left @ columns
        products[named] = -np.inf
        best = int(np.argmax(products))
        fresh = columns[:, best].copy()
        for _ in range(2):  # the second time takes away what rounding left
            shadow = Q[:t] @ fresh
            R[:t, t] += shadow
            fresh -= shadow @ Q[:t]
        R[t, t] = np.linalg.norm(fresh)
        if R[t, t] < DEPENDENT:
            break
        named.append(best)
        Q[t] = fresh / R[t, t]
        projected[t] = Q[t] @ left
        left -= projected[t] * Q[t]
        if len(named) >= size:
            z = coefficients()
            group = largest(z, size)
            if replaying(group):
                return group
            estimate = z if estimate is None else estimate
    # With fewer equations than people to name, this is the best estimate.
    return coefficients() if estimate is None else estimate
