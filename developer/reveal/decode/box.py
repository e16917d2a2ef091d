"""The box decoder: a group of N0 people, relaxed to the convex set around all such groups.

Basis pursuit (l1.py) assumes that z is sparse; this decoder uses all of its structure: ``z_j`` is 0 or 1 for everybody,
and N0 of them are 1. Groups that explain the answers lie in both of

    A = {z : H z = eta, 1'z = N0}    and    D = [0, 1]^n,

and with enough answers A and D meet in nothing else. The splitting of Douglas and Rachford finds a common point of two
convex sets: from any w repeat

    z = the point of D nearest to w,    p = the point of A nearest to 2 z - w,    w += RELAXATION (p - z).

The iteration stops early once the N0 largest entries of p reproduce every answer: they are the group. Where the common
points are many, the same iteration goes on with the set of groups in the place of D. That set is not convex, so nothing
is guaranteed, but it often finds the one group that reproduces the answers: for 100 people, 10 of them disadvantaged,
and rows within 0.1 of h0, the box alone found everybody in 38 of 40 trials with 30 answers and 20 with 25; both
together in 40 and 30. Where A and D do not meet, no group exists, and z is the point of D nearest to A (Bauschke,
Moursi, Math. Program. 2017).
"""

from collections.abc import Callable

import numpy as np

from developer.reveal.decode.affine import Affine, largest, replays, solutions_of_size, sums
from developer.reveal.decode.decoder import DecoderInputs
from fairwall.arrays import Floats

RELAXATION = 1.8
"""Relaxation; anything in (0, 2) converges, and 1.6 to 1.9 took half the steps of 1 (measured)."""

STEPS_MAX = 1000
CHECK = 10
"""Steps between two checks of the N0 largest entries."""

CONVERGED = 1e-9
"""Length of a step that ends the iteration."""

CLOSE = 1e-4
"""Largest distance from A at which a point of D counts as common."""


def decode(evidence: DecoderInputs) -> Floats:
    """Estimate v with z in [0, 1]^n, its sum N0, and the smallest possible error in the answers.

    Entries are 1/N1 and -1/N0 only where a group reproduces every answer. The sizes are required; the noise
    distribution and the features are not used.
    """
    n0, n1 = evidence.n0, evidence.n1
    eta = sums(evidence)
    equations = solutions_of_size(evidence.rows, eta, n0)

    def replaying(point: Floats) -> Floats | None:
        group = largest(point, n0)
        return group if replays(evidence.rows, eta, group) else None

    z, common = _relax(equations, replaying)
    if common:
        group = _search(equations, z, n0, replaying)
        z = z if group is None else group
    return 1 / n1 - (1 / n0 + 1 / n1) * z


Replaying = Callable[[Floats], Floats | None]
"""A function that returns the group of a point's N0 largest entries, (n,), if it reproduces every answer, else None."""


def _relax(equations: Affine, replaying: Replaying) -> tuple[Floats, bool]:
    """Return the point of D nearest to A, (n,), or a group; and whether it is a point of A that is no group."""
    if equations.determined:
        z = equations.least_norm()
        group = replaying(z)
        return (np.clip(z, 0, 1), False) if group is None else (group, False)
    w = equations.least_norm()
    for step in range(STEPS_MAX):
        z = np.clip(w, 0, 1)
        p = equations.nearest(2 * z - w)
        if step % CHECK == 0:
            group = replaying(p)
            if group is not None:
                return group, False
            if np.abs(p - z).max() < CONVERGED:
                break
        w += RELAXATION * (p - z)
    return z, bool(np.abs(equations.nearest(z) - z).max() < CLOSE)


def _search(equations: Affine, start: Floats, n0: int, replaying: Replaying) -> Floats | None:
    """Return a group that reproduces the answers, (n,), searched from a common point of A and D, or None."""
    w = start.copy()
    for step in range(STEPS_MAX):
        p = equations.nearest(w)
        reflected = 2 * p - w
        if step % CHECK == 0:
            group = replaying(reflected)
            if group is not None:
                return group
        w += largest(reflected, n0) - p
    return None
