"""The theorems of [FF], tried on tables with known counts, and two tables' base rates.

[FF]: "Fair Finetuning Mitigates Distribution Inference Attacks". Notation as in `fairwall.learning.fairness`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairwall.learning.fairness import TAU, leakage
from sim.datasets import load
from sim.papers.finding import ROUNDING, CheckResult, to_rounding

_GROUP = np.repeat([0, 1], 1000)


def equal_base_rates() -> CheckResult:
    """Check Theorem 1: the gap of positive rates is at most W EO. Counterexample: a predictor that is always right."""
    labels = _labels(100, 300)
    right = leakage(labels, labels, _GROUP)
    return _exceeds(
        "true where both distributions have the same base rate",
        right.ppr_gap[0],
        right.printed_bound[0],
        "base rates 10% and 30%, a predictor that is always right",
    )


def pure_groups() -> CheckResult:
    """Check Corollary 1: W is 1 for pure groups, in every table of up to 8 people with both labels in both groups."""
    worst, tables = 0.0, 0
    for labels, group in _tables(8):
        found = leakage(labels, labels, group)
        worst, tables = max(worst, abs(found.w - 1)), tables + 1
    return to_rounding(f"W is 1 in all {tables} tables of up to 8 people", worst, "W is off by", tables=tables)


def group_predictor() -> CheckResult:
    """Check Proposition 1: a model that predicts the group has equality, in all tables of up to 8 people."""
    worst, tables = 0.0, 0
    for labels, group in _tables(8):
        found = leakage(group, labels, group)
        worst = max(worst, abs(found.ppr_gap[0] - 1), abs(found.printed_bound[0] - 1))
        tables += 1
    return to_rounding(f"EO, W and the gap are 1 in all {tables} tables of up to 8 people", worst, tables=tables)


def smaller_bound() -> CheckResult:
    """Check Theorem 2: a model of smaller EO has the smaller gap."""
    labels = _labels(100, 300)
    before = leakage(_decided(labels, tpr=(60, 90), fpr=(0, 10)), labels, _GROUP)
    after = leakage(_decided(labels, tpr=(20, 30), fpr=(0, 0)), labels, _GROUP)
    against = after.eo[0] < before.eo[0] and after.gap[0] > before.gap[0]
    figures = {"eo": before.eo[0], "eo_tuned": after.eo[0], "gap": before.gap[0], "gap_tuned": after.gap[0]}
    return CheckResult(
        "a smaller bound says nothing of what it bounds",
        f"EO falls from {figures['eo']:.2f} to {figures['eo_tuned']:.2f}, and the accuracy gap rises from "
        f"{figures['gap']:.2f} to {figures['gap_tuned']:.2f}"
        if against
        else "",
        {key: float(value) for key, value in figures.items()},
    )


def each_attribute() -> CheckResult:
    """Check Theorem 3: Theorem 1's bound holds for each of several attributes. The same counterexample, with two."""
    second = np.tile([0, 1], 1000)
    labels = (np.arange(2000) % 20 < 2 + 4 * _GROUP + 6 * second).astype(int)
    found = [leakage(labels, labels, group) for group in (_GROUP, second)]
    gaps = [float(each.ppr_gap[0]) for each in found]
    bounds = [float(each.printed_bound[0]) for each in found]
    against = all(gap > bound for gap, bound in zip(gaps, bounds, strict=True))
    return CheckResult(
        "fails as Theorem 1 does",
        f"two attributes, a predictor that is always right: gaps {gaps[0]:.2f} and {gaps[1]:.2f}, bounds "
        f"{bounds[0]:g} and {bounds[1]:g}"
        if against
        else "",
        {"first": gaps[0], "second": gaps[1]},
    )


def floor_identity() -> CheckResult:
    """Check Appendix C: with EO 0 the accuracy gap is dpi |TPR + FPR - 1|."""
    worst, cases = 0.0, 0
    for tpr, fpr, base in itertools.product(range(0, 101, 10), range(0, 101, 10), (100, 300, 500)):
        labels = _labels(100, base)
        found = leakage(_decided(labels, (tpr, tpr), (fpr, fpr)), labels, _GROUP)
        worst = max(worst, abs(found.gap[0] - found.dpi * abs(tpr / 100 + fpr / 100 - 1)), found.eo[0])
        cases += 1
    return to_rounding(f"in {cases} cases, to {worst:.0e}", worst, cases=cases)


def floor_without_guessing() -> CheckResult:
    """Check Appendix C: that gap is 0 only where base rates agree or the model is no better than chance."""
    labels = _labels(100, 500)
    found = leakage(_decided(labels, tpr=(80, 80), fpr=(20, 20)), labels, _GROUP)
    against = found.gap[0] < ROUNDING and found.dpi > 0.1
    return CheckResult(
        "it is 0 where TPR + FPR = 1: as many of either label are decided rightly",
        f"TPR 0.8 and FPR 0.2 in both groups: accuracy {found.accuracy.mean():.0%}, base rates {found.dpi:.0%} apart, "
        "accuracy gap 0"
        if against
        else "",
        {"gap": float(found.gap[0]), "accuracy": float(found.accuracy.mean()), "dpi": found.dpi},
    )


def small_shift() -> CheckResult:
    """Check Remark 2: where W is small there is little to infer, for any EO."""
    # Both distributions have equal groups at each label, and different base rates.
    group, labels = np.tile([0, 1], 1000), _labels(100, 500)
    found = leakage(labels, labels, group, side=_GROUP)
    return _exceeds(
        "W does not see the base rates",
        found.ppr_gap[0],
        found.w,
        "groups alike in both distributions, base rates 10% and 50%, a predictor that is always right",
    )


def purest_is_worst() -> CheckResult:
    """Check Corollary 1: no mixture of two groups gives a model away more than the pure groups do."""
    over, cases = -1.0, 0
    parts = np.repeat([0, 1, 0, 1], 100)
    for tprs, fprs in itertools.product(itertools.product((20, 50, 90), repeat=2), repeat=2):
        for share in range(0, 101, 10):
            group = np.concatenate([np.arange(200) % 100 < share, np.arange(200) % 100 >= share]).astype(int)
            chosen = np.where(group == 1, np.array(tprs)[1], tprs[0]), np.where(group == 1, fprs[1], fprs[0])
            # Expected accuracies of the rows of each distribution, half of which have label 1.
            right = np.where(parts == 1, chosen[0], 100 - chosen[1]) / 100
            mixed = abs(right[200:].mean() - right[:200].mean())
            own = [(tprs[a] + 100 - fprs[a]) / 200 for a in (0, 1)]
            over, cases = max(over, mixed - abs(own[1] - own[0])), cases + 1
    found = f"in {cases} mixtures the expected gap is at most that of pure groups"
    return to_rounding(found, over, "a mixture's gap is larger by", cases=cases)


def below_threshold() -> CheckResult:
    """Check the reading of Table 1: a gap below 0.05 cannot be noticed by a threshold test."""
    labels = _labels(500, 500)
    signed = []
    for better in (0, 1):
        rates = (84, 80) if better == 0 else (80, 84)
        found = leakage(_decided(labels, tpr=rates, fpr=(100 - rates[0], 100 - rates[1])), labels, _GROUP)
        signed.append((float(found.gap[0]), float(found.accuracy[1, 0] - found.accuracy[0, 0])))
    (gap, low), (other, high) = signed
    against = max(gap, other) < TAU and low < 0 < high
    return CheckResult(
        "how large a gap can be noticed depends on the number of test rows; a fixed bound does not tell",
        f"1,000 test rows of each group: models of either group are 84% and 80% right, gap {gap:.2f}; whether the "
        "difference is above 0 tells which group every one was trained on"
        if against
        else "",
        {"gap": gap, "low": low, "high": high},
    )


def compas_base_rates() -> list[Mapping[str, Any]]:
    """Return the base rates of both groups of the shipped COMPAS table, and their gap: one line, percentages."""
    return [_base_rates("compas", "race", "Caucasian", "African-American")]


def lsac_base_rates(table: Path) -> list[Mapping[str, Any]]:
    """Return the gaps in passing the bar by race (white or not) and by sex: one line, in percentage points."""
    race, sex = (
        _base_rates(f"lsac:{table}", column, advantaged, None)
        for column, advantaged in (("race", "white"), ("gender", "male"))
    )
    return [{"table": 0, "race": race["gap"], "sex": sex["gap"]}]


def _base_rates(source: str, protected: str, advantaged: str, disadvantaged: str | None) -> dict[str, Any]:
    rows = load(source, protected=protected, advantaged=advantaged, disadvantaged=disadvantaged)
    labels, group = np.asarray(rows.labels), np.asarray(rows.protected)
    rates = [100 * float(labels[group == a].mean()) for a in (0, 1)]
    return {"table": 0, "disadvantaged": rates[0], "advantaged": rates[1], "gap": abs(rates[1] - rates[0])}


def _labels(*positives: int) -> NDArray[np.intp]:
    """Label 1,000 people of each group, ``positives`` of them 1."""
    return np.concatenate([np.arange(1000) < ones for ones in positives]).astype(np.intp)


def _decided(labels: NDArray[np.intp], tpr: Sequence[int], fpr: Sequence[int]) -> NDArray[np.intp]:
    """Return decisions with these rates in the two groups, in percent."""
    decided = np.zeros(len(labels), np.intp)
    for a, y in itertools.product((0, 1), (0, 1)):
        rows = np.flatnonzero((a == _GROUP) & (labels == y))
        decided[rows[: len(rows) * (tpr if y else fpr)[a] // 100]] = 1
    return decided


def _tables(people: int) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Yield every table of at most ``people`` rows, up to their order, with no empty cell."""
    for counts in itertools.product(range(1, people), repeat=4):
        if sum(counts) <= people:
            labels = np.repeat([0, 1, 0, 1], counts)
            yield labels, np.repeat([0, 0, 1, 1], counts)


def _exceeds(holds: str, gap: float, bound: float, case: str) -> CheckResult:
    against = gap > bound + ROUNDING
    return CheckResult(
        holds,
        f"{case}: gap {gap:.2f}, bound {bound:g}" if against else "",
        {"gap": float(gap), "bound": float(bound)},
    )
