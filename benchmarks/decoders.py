"""Solvers that decode exact answers, side by side: ours on numpy, and cvxpy's on the same problem in the same run.

    OPENBLAS_NUM_THREADS=1 python benchmarks/decoders.py [--rounds 5] [--skip-large]

n = 1,000 people, 104 of them disadvantaged, m = 400 rows: uniform ones, and Algorithm 2's, within 0.1 of h0. Basis
pursuit and the box are each solved by Clarabel (an interior point method) and by SCS (a first-order one, on
orthonormalised rows and to four digits, its best setting here); and n = 10,000 people, 100 of them disadvantaged,
m = 1,000, by ours alone. Every solver has to find everybody. The times of a round are compared within the round.
Exit status 1 if a bar is missed: 20 times as quick as Clarabel, 3 times as quick as SCS, 15 s for 10,000 people.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import cvxpy
import numpy as np
from numpy.typing import NDArray
from short import parsed

from developer.reveal.decode import DecoderInputs, box, l1, omp
from developer.reveal.decode.affine import solutions, sums

cp: Any = cvxpy  # partly typed
CLARABEL = {"solver": cp.CLARABEL, "direct_solve_method": "qdldl"}
SCS = {"solver": cp.SCS, "eps_abs": 1e-4, "eps_rel": 1e-4, "max_iters": 5000}
BAR_CLARABEL, BAR_SCS, BAR_SECONDS = 20.0, 3.0, 15.0

Solve = Callable[[DecoderInputs], NDArray[np.float64]]


def world(n: int, n0: int, m: int, near_h0: bool, seed: int) -> tuple[DecoderInputs, NDArray[np.bool_]]:
    """Draw rows, exact gaps, and whom they are about."""
    rng = np.random.default_rng(seed)
    z = np.zeros(n, np.bool_)
    z[rng.permutation(n)[:n0]] = True
    rows = rng.uniform(0, 1, (m, n))
    if near_h0:
        rows = np.clip(rng.beta(0.5, 2, n) + 0.1 * (2 * rows - 1), 0, 1)
    return DecoderInputs(rows, rows[:, ~z].mean(axis=1) - rows[:, z].mean(axis=1), n0, n - n0), z


def by_cvxpy(problem: str, settings: dict[str, Any], orthonormal: bool) -> Solve:
    """Make a decoder that hands basis pursuit or the box over to cvxpy."""

    def solve(evidence: DecoderInputs) -> NDArray[np.float64]:
        rows, values = evidence.rows, sums(evidence)
        if orthonormal:
            found = solutions(rows, values)
            rows, values = found.basis, found.image
        z = cp.Variable(rows.shape[1])
        if problem == "l1":
            cp.Problem(cp.Minimize(cp.norm1(z)), [rows @ z == values]).solve(**settings)
        else:
            constraints = [rows @ z == values, cp.sum(z) == evidence.n0, z >= 0, z <= 1]
            cp.Problem(cp.Minimize(0), constraints).solve(**settings)
        return 1 / evidence.n1 - (1 / evidence.n0 + 1 / evidence.n1) * np.asarray(z.value, np.float64)

    return solve


def seconds(solve: Solve, evidence: DecoderInputs, z: NDArray[np.bool_]) -> float:
    """Time a solver, and make sure that it finds everybody."""
    started = time.perf_counter()
    v = solve(evidence)
    spent = time.perf_counter() - started
    if (((1 / evidence.n1 - v) > 0.5 * (1 / evidence.n0 + 1 / evidence.n1)) != z).any():
        raise RuntimeError("a solver did not find everybody")
    return spent


def side_by_side(rounds: int, people: int, *, near_h0: bool) -> bool:
    """Time all solvers in turn, print medians and ratios, and say whether the bars are met."""
    ours: dict[str, Solve] = {"l1": l1.decode, "box": box.decode, "omp": omp.decode}
    theirs: dict[str, Solve] = {
        f"{problem} {name}": by_cvxpy(problem, settings, orthonormal)
        for problem in ("l1", "box")
        for name, settings, orthonormal in (("Clarabel", CLARABEL, False), ("SCS", SCS, True))
    }
    times: dict[str, list[float]] = {name: [] for name in ours | theirs}
    m = round(0.4 * people) if people >= 1000 else round(0.6 * people)
    for number in range(rounds):
        evidence, z = world(people, round(0.104 * people), m, near_h0, number)
        for name, solve in (ours | theirs).items():
            times[name].append(seconds(solve, evidence, z))
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
    met = True
    print(f"\nn = {people:,}, m = {m}, {'within 0.1 of h0' if near_h0 else 'uniform rows'}")
    print(f"{'':8}{'median s':>10}{'Clarabel s':>12}{'ratio':>8}{'SCS s':>10}{'ratio':>8}")
    for name in ours:
        line = f"{name:8}{statistics.median(times[name]):10.3f}"
        for solver, width, bar in (("Clarabel", 12, BAR_CLARABEL), ("SCS", 10, BAR_SCS)):
            # Nothing else solves what omp does; basis pursuit is what it stands in for.
            other = times[f"{'l1' if name == 'omp' else name} {solver}"]
            ratio = statistics.median(b / a for a, b in zip(times[name], other, strict=True))
            line += f"{statistics.median(other):{width}.3f}{ratio:8.1f}"
            met &= name == "omp" or ratio >= bar
        print(line)
    return met


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--people", type=int, default=1000, help="besides; a tenth of them are disadvantaged")
    parser.add_argument("--skip-large", action="store_true", help="leave out 10,000 people")
    asked = parsed(parser, rounds=1, skip_large=True, people=100)
    met = side_by_side(asked.rounds, asked.people, near_h0=False)
    met &= side_by_side(asked.rounds, asked.people, near_h0=True)
    if not asked.skip_large:
        print("\nn = 10,000, m = 1,000, N0 = 100")
        for near_h0 in (False, True):
            spent = seconds(box.decode, *world(10_000, 100, 1000, near_h0, 0))
            met &= spent < BAR_SECONDS
            print(f"box     {spent:10.3f} s, {'within 0.1 of h0' if near_h0 else 'uniform rows'}")
    print(f"\nbars: Clarabel {BAR_CLARABEL:g}, SCS {BAR_SCS:g}, {BAR_SECONDS:g} s: {'met' if met else 'MISSED'}")
    return int(not met and not asked.short)


if __name__ == "__main__":
    sys.exit(main())
