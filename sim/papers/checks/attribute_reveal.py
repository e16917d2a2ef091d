"""The theorems of [AR], tried in all small worlds, and its printed formulas.

[AR]: Hamman, Chen, Dutta, "Can Querying for Bias Leak Protected Attributes?", FAccT 2023, and its preprint. A is 1 for
the N1 advantaged and 0 for the N0 disadvantaged; v is 1/N1 and -1/N0 there, so that a model's gap is h v. Theorems
about exact answers are computed in fractions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from fairwall.laws.mechanisms.calibration import (
    cauchy_loss,
    conceal_laplace_law,
    printed_conceal_scale,
    printed_laplace_scale,
)
from fairwall.laws.metrics.sensitivity import flip_sensitivity
from sim.papers.finding import CheckResult
from sim.report.cells import paper_figure

Groups = tuple[int, ...]


def alone() -> CheckResult:
    """Check Example 1: the gap of a model that accepts one person alone reveals her group and both groups' sizes."""
    worlds = 0
    for groups in _worlds(8):
        n, n1 = len(groups), sum(groups)
        for person in range(n):
            gap = _gap(groups, [int(each == person) for each in range(n)])
            size = 1 / abs(gap)
            told = (int(gap > 0), int(size if gap > 0 else n - size))
            if told != (groups[person], n1):
                return CheckResult("", f"A = {groups}, person {person}: {told}")
            worlds += 1
    return CheckResult(f"in all {worlds:,} worlds of up to 8 people", figures={"worlds": worlds})


def two_models() -> CheckResult:
    """Check Example 2: two models that differ in one person have gaps that differ by 1/N1 or -1/N0, by her group."""
    wrong = right = 0
    case = ""
    for groups in _worlds(5):
        n, n1 = len(groups), sum(groups)
        for first in itertools.product((0, 1), repeat=n):
            second = (1 - first[0], *first[1:])
            printed = Fraction(1, n1) if groups[0] else Fraction(-1, n - n1)
            difference = _gap(groups, second) - _gap(groups, first)
            if difference == printed:
                right += 1
            else:
                wrong += 1
                case = (
                    case or f"A = {groups}, the first model {first}: the gaps differ by {difference}, printed {printed}"
                )
    return CheckResult(
        f"true in the {right:,} cases in which the first model rejects the person, with the other sign in {wrong:,}",
        case,
        {"right": right, "wrong": wrong},
    )


def full_rank() -> CheckResult:
    """Check Theorem 1: n independent models reveal everybody's group. Binary models, drawn, of full rank."""
    return _solved(lacking=0)


def one_fewer() -> CheckResult:
    """Check Remark 3: n - 1 models are enough. Their equations and that v adds up to 0 have one solution."""
    return _solved(lacking=1)


def large_balanced() -> CheckResult:
    """Check Remark 3: solving for the sizes fails numerically where both groups are large and similar in size."""
    wrong = 0
    sizes = range(1, 100_001)
    for size in sizes:
        # One gap of a model that accepts one person alone, as a float64.
        wrong += round(1 / (1.0 / size)) != size
    return CheckResult(
        f"of {len(sizes):,} sizes every one is found from its reciprocal in float64",
        f"N0 = N1 = 50,000 of 100,000 people: 1/N1 is {1 / 50_000}, and its reciprocal rounds to 50,000"
        if not wrong
        else "",
        {"wrong": wrong},
    )


def sensing_sign() -> CheckResult:
    """Check Algorithm 2, eq. (7): SP - H r = H s with r = 1/N1 everywhere and s >= 0."""
    against, worlds = "", 0
    for groups in _worlds(5):
        n, n1 = len(groups), sum(groups)
        sparse = [Fraction(0) if a else Fraction(1, n1) + Fraction(1, n - n1) for a in groups]
        for row in itertools.product((0, 1), repeat=n):
            printed = _gap(groups, row) - Fraction(sum(row), n1)
            wanted = sum(each for each, taken in zip(sparse, row, strict=True) if taken)
            worlds += 1
            if printed != wanted and not against:
                against = f"A = {groups}, a model that decides {row}: SP - H r is {printed}, H s is {wanted}"
            if printed != -wanted:
                return CheckResult("", "neither sign fits")
    return CheckResult(f"in all {worlds:,} cases SP - H r is -H s", against, {"cases": worlds})


def size_query() -> CheckResult:
    """Check Remark 4: one model that accepts one person reveals N0 and N1."""
    for n in range(2, 61):
        told = {Fraction(1, n1): n1 for n1 in range(1, n)} | {Fraction(-1, n - n1): n1 for n1 in range(1, n)}
        if len(told) != 2 * (n - 1):
            return CheckResult("", f"n = {n}: two sizes give one gap")
    return CheckResult("for every N0 of up to 60 people the gap is another", figures={"people": 60})


def few_answers() -> CheckResult:
    """Check Section 3.2.1: about N0 log(n/N0) answers are needed. Weights 2^-j in one answer of float64, all worlds."""
    n, n0 = 40, 3
    weights = np.ldexp(1.0, -np.arange(1, n + 1))
    chosen = np.array(list(itertools.combinations(range(n), n0)))
    lost = weights[chosen].sum(axis=1)
    gaps = (weights.sum() - lost) / (n - n0) - lost / n0
    different = len(np.unique(gaps)) == len(chosen)
    least = n0 * math.log(n / n0)
    return CheckResult(
        f"a limit of compressed sensing, not of a developer: {len(chosen):,} worlds, {len(np.unique(gaps)):,} answers",
        f"n = {n}, N0 = {n0}, weights 1/2 to 2^-{n}: the one answer is another in each of {len(chosen):,} worlds, "
        f"where N0 ln(n/N0) is {least:.1f}"
        if different
        else "",
        {"worlds": len(chosen), "answers": len(np.unique(gaps))},
    )


def absolute_gaps() -> CheckResult:
    """Check Theorem 4: n absolute gaps separate people into the two groups.

    Each person is queried alone. If all these gaps are equal, the groups are equally large; each person is then queried
    together with the first.
    """
    worlds = 0
    for groups in _worlds(9):
        n = len(groups)
        alone = [abs(_gap(groups, [int(each == person) for each in range(n)])) for person in range(n)]
        if 2 / alone[0] == n:
            both = [abs(_gap(groups, [int(each in (0, person)) for each in range(n)])) for person in range(1, n)]
            alike = [True, *(gap == 2 * alone[0] for gap in both)]
        else:
            alike = [gap == alone[0] for gap in alone]
        if alike != [a == groups[0] for a in groups]:
            return CheckResult("", f"A = {groups}")
        worlds += 1
    return CheckResult(f"in all {worlds:,} worlds of up to 9 people", figures={"worlds": worlds})


def equal_opportunity() -> CheckResult:
    """Check Remark 5: gaps of equal opportunity reveal the groups of people with Y = 1, and nothing of the others."""
    worlds = 0
    for n in (4, 5):
        for labels in itertools.product((0, 1), repeat=n):
            answers: dict[Groups, set[tuple[Fraction, ...]]] = {}
            for groups in itertools.product((0, 1), repeat=n):
                inside = tuple(a for a, y in zip(groups, labels, strict=True) if y)
                if 0 < sum(inside) < len(inside):
                    places = [place for place, y in enumerate(labels) if y]
                    rows = itertools.product((0, 1), repeat=n)
                    found = tuple(_gap(inside, [row[place] for place in places]) for row in rows)
                    answers.setdefault(inside, set()).add(found)
                    worlds += 1
            told = [each for found in answers.values() for each in found]
            if any(len(found) != 1 for found in answers.values()) or len(set(told)) != len(answers):
                return CheckResult("", f"Y = {labels}")
    return CheckResult(
        f"in {worlds:,} worlds of 4 and 5 people: all answers together are a function of those groups, one to one",
        figures={"worlds": worlds},
    )


def signed_sensitivity() -> CheckResult:
    """Check Theorem 5: one person moves a gap by 1/2 + 1/(n-1) at most. All worlds and models of 3 to 6 people."""
    return _sensitivity("1/2 + 1/(n-1)", lambda gap: gap, lambda n: Fraction(1, 2) + Fraction(1, n - 1), range(3, 7))


def absolute_sensitivity() -> CheckResult:
    """Check Theorem 6: one person moves an absolute gap by 1/2 at most."""
    return _sensitivity("1/2", abs, lambda _: Fraction(1, 2), range(4, 7))


def opportunity_sensitivity() -> CheckResult:
    """Check Section 4.1: equal opportunity has the sensitivity 1/2 + 1/(n-1), n being all people."""
    printed = Fraction(1, 2) + Fraction(1, 3)
    labels, first, second = (1, 1, 1, 0), (0, 1, 1, 1), (0, 0, 1, 1)
    changes = []
    for row in itertools.product((0, 1), repeat=4):
        inside = [place for place, y in enumerate(labels) if y]
        gaps = [_gap([a[place] for place in inside], [row[place] for place in inside]) for a in (first, second)]
        changes.append((abs(gaps[0] - gaps[1]), row, gaps))
    change, row, gaps = max(changes)
    return CheckResult(
        "n has to be those with Y = 1",
        f"Y = {labels}, A = {first} and {second}, a model that decides {row}: {gaps[0]} and {gaps[1]}, a change of "
        f"{change}, printed {printed}"
        if change > printed
        else "",
        {"change": float(change)},
    )


def conceal_loss() -> CheckResult:
    """Check Theorem 7: the printed Attribute-Conceal is epsilon-DP. Between N0 = 1 and N0 = 2."""
    worst, where = 0.0, (0, 0, 0.0)
    for n, queries, epsilon in itertools.product((50, 100, 1000), (1, 25, 40), (1.0, 5.0, 10.0)):
        scales = [printed_conceal_scale(n0, n - n0, queries, epsilon) for n0 in (1, 2)]
        loss = queries * cauchy_loss(flip_sensitivity("sp", n, 2), *scales)
        if loss / epsilon > worst:
            worst, where = loss / epsilon, (n, queries, epsilon)
    n, queries, epsilon = where
    return CheckResult(
        "holds where 2 <= N0 <= N1",
        f"n = {n}, {queries} models, epsilon {epsilon:g}: between N0 = 1 and 2 the loss is {worst * epsilon:.1f}"
        if worst > 1
        else "",
        {"loss": worst * epsilon},
    )


def conceal_laplace_delta() -> CheckResult:
    """Check Theorem 8: Laplace noise on the smooth sensitivity is (epsilon, delta)-DP. One query, all neighbours."""
    worst, cases = 0.0, 0
    for n, epsilon, delta in itertools.product((10, 50, 200), (0.2, 0.5, 0.9), (1e-2, 1e-5)):
        for n0 in range(2, n - 1):
            scales = [conceal_laplace_law("sp", at, n - at, 1, epsilon, delta).scale for at in (n0, n0 - 1)]
            shift = flip_sensitivity("sp", n, n0)
            for here, there in (scales, scales[::-1]):
                worst, cases = max(worst, _divergence(shift, here, there, epsilon) / delta), cases + 1
    return CheckResult(
        f"in {cases:,} cases of one query delta is at most {worst:.2g} of what is claimed",
        "" if worst <= 1 else f"delta is {worst:g} times what is claimed",
        {"cases": cases},
    )


def smooth_absolute() -> CheckResult:
    """Check Sections 4.2, A.6: at N0 = N1 = 2 an absolute gap's local sensitivity is at most max(1/N0, 1/2) = 1/2."""
    return _sensitivity("max(1/N0, 1/2)", abs, lambda _: Fraction(1, 2), (4,), balanced=True)


def convexity_argument() -> CheckResult:
    """Check Preprint A.5: each of the three terms of the second derivative is positive, where N0 < N1."""
    # The third term is 2 beta e^(-k beta) (1/(N1+k+1)^2 - 1/(N0-k)^2).
    negative = cases = 0
    for n0, n1 in itertools.product(range(3, 30), range(4, 60)):
        if n0 < n1:
            for k in range(n0 - 1):
                cases += 1
                negative += Fraction(1, (n1 + k + 1) ** 2) < Fraction(1, (n0 - k) ** 2)
    return CheckResult(
        f"the third term is negative in {negative:,} of {cases:,} cases; the function is convex nevertheless: both of "
        "its parts are log-convex",
        f"N0 = 3, N1 = 4, k = 0: 1/25 - 1/9 is {float(Fraction(1, 25) - Fraction(1, 9)):.3f}",
        {"negative": negative, "cases": cases},
    )


def printed_scale_order() -> CheckResult:
    """Check Table 2: the error falls as N0 grows and rises with the number of models. By the printed formula."""
    grid = {
        (n0, m): printed_conceal_scale(n0, 1000 - n0, m, 100.0)
        for n0 in (10, 50, 100, 200, 300, 400)
        for m in (500, 900)
    }
    columns = [[grid[n0, m] for n0 in (10, 50, 100, 200, 300, 400)] for m in (500, 900)]
    ordered = all(column == sorted(column, reverse=True) for column in columns)
    ordered &= all(grid[n0, 500] <= grid[n0, 900] for n0, _ in grid)
    return CheckResult(
        " and ".join(f"from {each[0]:.3g} to {each[-1]:.3g}" for each in columns) + " at 500 and at 900 models",
        "" if ordered else "in another order",
        {f"{n0}-{m}": scale for (n0, m), scale in grid.items()},
    )


def printed_errors() -> list[dict[str, Any]]:
    """Compare printed average errors with the printed formulas: a line for each that has a scenario's cell.

    ``ratio`` is log10 of the formula's typical noise over the printed error. Typical is the scale: for Cauchy noise,
    which has no mean, the median (Algorithm 3); for Laplace noise the mean (Theorem 5).
    """
    from sim.games import read

    lines = [_printed("Figure 3", "conceal", (1000, 10, 60, 100.0), 0.0601)]
    for name in ("conceal-adult-100", "conceal-adult-1000", "synthetic-table2", "synthetic-table3", "german-sensing"):
        for scenario in (cell.scenario for cell in read(name).cells):
            figure = paper_figure(scenario)
            if figure is not None and figure.query_error_mean and math.isfinite(scenario.epsilon):
                source = figure.source.rpartition(", ")[2]
                n0 = scenario.data.n0 or _WOMEN
                asked = (scenario.people, n0, scenario.queries, scenario.epsilon)
                lines.append(_printed(source, scenario.compliance.mechanism, asked, figure.query_error_mean))
    return lines


def printed_formulas() -> CheckResult:
    """Check Table 1: the average errors are those of Algorithm 3 and of Theorem 5."""
    lines = [line for line in printed_errors() if line["source"] == "Table 1"]
    times = {each: [10 ** line["ratio"] for line in lines if line["mechanism"] == each] for each in _FORMULAS}
    said = (
        f"{min(found):,.0f} to {max(found):,.0f} times smaller than the {kind} of {noise}"
        for found, (kind, noise, _) in zip(times.values(), _FORMULAS.values(), strict=True)
    )
    first = lines[0]
    return CheckResult(
        f"in {len(lines)} cells the printed errors are {', '.join(said)}; no one missing factor explains them",
        f"{first['people']} people, N0-m {first['cell']}, epsilon {first['epsilon']:g}: Attribute-Conceal errs by "
        f"{first['printed']} as printed, and its formula's noise has the median {first['formula']:.3g}"
        if min(map(min, times.values())) > 2
        else "",
        {f"{line['mechanism']}-{line['people']}-{line['cell']}-{line['epsilon']:g}": line["ratio"] for line in lines},
    )


def printed_order() -> CheckResult:
    """Check Table 1: Attribute-Conceal's noise is smaller than the Laplace mechanism's."""
    by_cell: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = {}
    for line in printed_errors():
        if line["source"] == "Table 1":
            cell = (line["people"], line["cell"], line["epsilon"])
            by_cell.setdefault(cell, {})[line["mechanism"]] = line
    pairs = [(each["conceal"], each["laplace"]) for each in by_cell.values()]
    larger = [one for one, other in pairs if one["formula"] > other["formula"]]
    printed = sum(one["printed"] < other["printed"] for one, other in pairs)
    return CheckResult(
        f"the printed figures have it smaller in {printed} of {len(pairs)} cells, the printed formulas in "
        f"{len(pairs) - len(larger)}",
        f"{larger[0]['people']} people, epsilon {larger[0]['epsilon']:g}: by the formulas its median is "
        f"{larger[0]['formula']:.3g}, above the mean of Laplace noise"
        if larger
        else "",
        {"printed": printed, "larger": len(larger), "cells": len(pairs)},
    )


_FORMULAS = {
    "conceal": ("median", "Attribute-Conceal's noise", printed_conceal_scale),
    "laplace": ("mean", "Laplace noise", lambda n0, n1, m, epsilon: printed_laplace_scale(n0 + n1, m, epsilon)),
}
"""The typical value of a mechanism's noise, and its printed scale."""

_WOMEN = 310
"""Women among German Credit's 1,000 people, who are all queried."""


def out_of_range() -> list[Mapping[str, Any]]:
    """Return the percentage of Attribute-Conceal's answers, as printed, that leave [-1, 1] though the gap is 0."""
    lines: list[Mapping[str, Any]] = []
    for number, (n, n0, m) in enumerate(((100, 10, 25), (100, 10, 40), (1000, 104, 300))):
        for epsilon in (5.0, 10.0, 100.0):
            scale = printed_conceal_scale(n0, n - n0, m, epsilon)
            share = 100 * (1 - 2 / math.pi * math.atan(1 / scale))
            lines.append({"setting": number, "epsilon": epsilon, "percent": share})
    return lines


def _printed(source: str, mechanism: str, setting: tuple[int, int, int, float], printed: float) -> dict[str, Any]:
    n, n0, m, epsilon = setting
    formula = _FORMULAS[mechanism][2](n0, n - n0, m, epsilon)
    line = {"source": source, "mechanism": mechanism, "people": n, "cell": f"{n0}-{m}", "epsilon": epsilon}
    return {**line, "printed": printed, "formula": formula, "ratio": math.log10(formula / printed)}


def _gap(groups: Sequence[int], row: Sequence[int]) -> Fraction:
    n1 = sum(groups)
    accepted = sum(h for h, a in zip(row, groups, strict=True) if a)
    return Fraction(accepted, n1) - Fraction(sum(row) - accepted, len(groups) - n1)


def _worlds(people: int, least: int = 2) -> Iterator[Groups]:
    """Yield every A of at most ``people`` people in which neither group is empty."""
    for n in range(least, people + 1):
        for groups in itertools.product((0, 1), repeat=n):
            if 0 < sum(groups) < n:
                yield groups


def _solved(lacking: int) -> CheckResult:
    rng = np.random.default_rng(3)
    worlds = 0
    for n in range(3, 9):
        while True:
            rows = rng.integers(0, 2, (n - lacking, n)).astype(float)
            # v adds up to 0, which is one more equation.
            known = np.vstack([rows, np.ones(n)]) if lacking else rows
            if np.linalg.matrix_rank(known) == n:
                break
        for groups in _worlds(n, least=n):
            n1 = sum(groups)
            v = np.where(np.array(groups) == 1, 1 / n1, -1 / (n - n1))
            gaps = np.concatenate([rows @ v, np.zeros(lacking)])
            found = np.linalg.solve(known, gaps)
            if tuple((found > 0).astype(int)) != groups:
                return CheckResult("", f"A = {groups}")
            worlds += 1
    return CheckResult(f"in all {worlds} worlds of 3 to 8 people", figures={"worlds": worlds})


def _sensitivity(printed: str, of: Any, most: Any, sizes: Sequence[int], *, balanced: bool = False) -> CheckResult:
    """Find the largest change by one person's group, over all worlds and models."""
    found, case, over = [], "", False
    for n in sizes:
        largest = Fraction(0)
        for groups in _worlds(n, least=n):
            if balanced and 2 * sum(groups) != n:
                continue
            for person in range(n):
                other = (*groups[:person], 1 - groups[person], *groups[person + 1 :])
                if not 0 < sum(other) < n:
                    continue
                for row in itertools.product((0, 1), repeat=n):
                    change = abs(of(_gap(groups, row)) - of(_gap(other, row)))
                    if change > largest:
                        largest = change
                        if change > most(n) and not over:
                            case = (
                                f"n = {n}, A = {groups}, a model that decides {row}, person {person}: {change}, "
                                f"printed {most(n)}"
                            )
        over = over or largest > most(n)
        found.append((n, largest))
    words = ", ".join(f"{largest} for n = {n}" for n, largest in found)
    tight = all(largest == most(n) for n, largest in found)
    return CheckResult(
        f"the largest change is {words}{f': {printed} exactly' if tight else ''}",
        case,
        {f"n{n}": float(largest) for n, largest in found},
    )


def _divergence(shift: float, here: float, there: float, epsilon: float) -> float:
    """Return the integral of (p - e^epsilon q)+ of two Laplace densities, of scale here at 0 and there at shift.

    p - e^epsilon q changes sign where |x|/here - |x - shift|/there has one value: at most once in each of the three
    pieces that 0 and shift cut the line into.
    """
    level = math.log(there / here) - epsilon
    ends = [-math.inf, 0.0, shift, math.inf]
    total = 0.0
    for low, high in itertools.pairwise(ends):
        inside = (max(low, -1e6) + min(high, 1e6)) / 2
        own, other = math.copysign(1, inside) / here, math.copysign(1, inside - shift) / there
        slope, at = other - own, level + (-shift * other)
        cuts = [low, high]
        if slope:
            cut = -at / slope
            if low < cut < high:
                cuts.insert(1, cut)
        for start, end in itertools.pairwise(cuts):
            middle = (max(start, -1e6) + min(end, 1e6)) / 2
            if level - abs(middle) / here + abs(middle - shift) / there > 0:
                total += _mass(start, end, here) - math.exp(epsilon) * _mass(start - shift, end - shift, there)
    return total


def _mass(low: float, high: float, scale: float) -> float:
    def below(x: float) -> float:
        return 0.5 * math.exp(x / scale) if x <= 0 else 1 - 0.5 * math.exp(-x / scale)

    return below(high) - below(low)
