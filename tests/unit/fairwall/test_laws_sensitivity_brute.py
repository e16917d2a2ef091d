"""Every metric's sensitivities against plain enumeration: attributes, labels, predictions, flips."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

from fairwall.laws.metrics.metric import METRICS
from fairwall.laws.metrics.sensitivity import (
    LabelGroupCounts,
    Sensitivities,
    flip_sensitivity,
    global_sensitivity,
    local_sensitivity,
    sensitivities,
    smooth_sensitivity,
)

Array = NDArray[np.float64]
Cells = tuple[int, int, int, int]  # n00, n01, n10, n11

BOUNDED = [key for key in METRICS if key != "di"]
TWO_STRATA = ["eodds_max", "eodds_sum"]
ONE_STRATUM = [key for key in BOUNDED if key not in TWO_STRATA]
BETAS = [0.0, 0.05, 0.4, 2.0]


# --- the metrics, written down a second time. `positive[y][a]` of `people[y][a]` persons have h = 1; NaN = undefined.


def share(part: Array, whole: Array) -> Array:
    return np.divide(part, whole, out=np.full(np.broadcast(part, whole).shape, np.nan), where=whole > 0)


def metric_values(metric: str, people: Array, positive: Array, undefined: float = np.nan) -> Array:
    n, p = people, positive
    people_of_both, positive_of_both, right = n[0] + n[1], p[0] + p[1], p[1] + n[0] - p[0]
    sp, eo, fpr, oad, ppv = (
        np.nan_to_num(share(top[1], of[1]) - share(top[0], of[0]), nan=undefined)
        for top, of in (
            (positive_of_both, people_of_both),
            (p[1], n[1]),
            (p[0], n[0]),
            (right, people_of_both),
            (p[1], positive_of_both),
        )
    )
    # A stratum without people has no gap.
    tpr_size = np.where(n[1].sum(axis=0) == 0, 0.0, np.abs(eo))
    fpr_size = np.where(n[0].sum(axis=0) == 0, 0.0, np.abs(fpr))
    values = {"sp": sp, "eo": eo, "fpr": fpr, "oad": oad, "ppv": ppv}
    values |= {f"abs_{key}": np.abs(values[key]) for key in ("sp", "eo", "fpr", "oad")}
    values |= {"eodds_max": np.maximum(tpr_size, fpr_size), "eodds_sum": tpr_size + fpr_size}
    return values[metric]


class World(NamedTuple):
    """All small data sets of n people: how far each can move a metric, and which are neighbours."""

    local: dict[Cells, float]
    neighbours: dict[Cells, set[Cells]]
    moves: dict[tuple[Cells, Cells], float] = {}  # noqa: RUF012  between two data sets; not of every world


@cache
def persons(metric: str, n: int, may_be_empty: bool) -> World:
    """From persons: every A, every Y, every H in {0, 1}^n, every person's flip."""
    undefined = 0.0 if may_be_empty else np.nan
    vectors = np.array(list(itertools.product((0, 1), repeat=n)))
    y, h = (grid.reshape(-1, n) for grid in np.broadcast_arrays(vectors[:, None, :], vectors[None, :, :]))
    values, cells = {}, {}
    for a in vectors:
        inside = np.array([[(y == label) & (a == group) for group in (0, 1)] for label in (0, 1)])
        people = inside.sum(axis=-1)
        positive = (inside & (h == 1)).sum(axis=-1)
        values[tuple(a)] = metric_values(metric, people.astype(float), positive.astype(float), undefined)
        cells[tuple(a)] = people.reshape(4, -1).T
    local: dict[Cells, float] = {}
    neighbours: dict[Cells, set[Cells]] = {}
    for a in vectors:
        here, found = values[tuple(a)], np.full(len(y), -np.inf)
        codes = cells[tuple(a)] @ (n + 1) ** np.arange(4)
        for person in range(n):
            other = a.copy()
            other[person] ^= 1
            there = values[tuple(other)]
            found = np.fmax(found, np.abs(there - here))  # without what is undefined before or after
            _, first = np.unique(codes * 1000003 + cells[tuple(other)] @ (n + 1) ** np.arange(4), return_index=True)
            for i in first:
                one, two = (tuple(map(int, cells[tuple(who)][i])) for who in (a, other))
                neighbours.setdefault(one, set()).add(two)
        for code in np.unique(codes):
            where = codes == code
            one = tuple(map(int, cells[tuple(a)][np.flatnonzero(where)[0]]))
            local[one] = max(local.get(one, -math.inf), float(found[where].max()))
    return World(local, neighbours)


@cache
def cell_sums(metric: str, n: int, may_be_empty: bool) -> World:
    """From cells: every four counts, every number of h = 1 among them, every kind of person's flip."""
    undefined = 0.0 if may_be_empty else np.nan
    local: dict[Cells, float] = {}
    neighbours: dict[Cells, set[Cells]] = {}
    moves: dict[tuple[Cells, Cells], float] = {}
    for cells in itertools.product(range(n + 1), repeat=4):
        if sum(cells) != n:
            continue
        positive = np.array(list(itertools.product(*(range(count + 1) for count in cells)))).T.astype(float)
        people = np.repeat(np.array(cells, float)[:, None], positive.shape[1], axis=1)
        here = metric_values(metric, people.reshape(2, 2, -1), positive.reshape(2, 2, -1), undefined)
        local[cells], neighbours[cells] = -math.inf, set()
        for label, group, h in itertools.product((0, 1), repeat=3):
            source, target = 2 * label + group, 2 * label + 1 - group
            possible = (positive[source] > 0) if h else (positive[source] < people[source])
            if not possible.any():
                continue
            moved_people, moved_positive = people.copy(), positive.copy()
            moved_people[[source, target]] += np.array([[-1.0], [1.0]])
            moved_positive[[source, target]] += h * np.array([[-1.0], [1.0]])
            there = metric_values(metric, moved_people.reshape(2, 2, -1), moved_positive.reshape(2, 2, -1), undefined)
            other: Cells = tuple(map(int, moved_people[:, 0]))  # type: ignore[assignment]
            neighbours[cells].add(other)
            possible &= ~(np.isnan(here) | np.isnan(there))
            move = float(np.abs(there - here)[possible].max(initial=-math.inf))
            local[cells] = max(local[cells], move)
            moves[cells, other] = max(moves.get((cells, other), -math.inf), move)
    return World(local, neighbours, moves)


def strata(metric: str, cells: Cells) -> list[tuple[int, int]]:
    n00, n01, n10, n11 = cells
    if metric.startswith("eodds"):
        return [groups for groups in ((n00, n01), (n10, n11)) if groups != (0, 0)]
    if metric in ("eo", "abs_eo"):
        return [(n10, n11)]
    if metric in ("fpr", "abs_fpr"):
        return [(n00, n01)]
    return [(n00 + n10, n01 + n11)]


def allowed(metric: str, cells: Cells, least: int = 1) -> bool:
    return all(min(groups) >= least for groups in strata(metric, cells))


def distances(start: Cells, step: Callable[[Cells], Iterator[Cells]]) -> dict[Cells, int]:
    found, front = {start: 0}, [start]
    while front:
        following = []
        for cells in front:
            for other in step(cells):
                if other not in found:
                    found[other] = found[cells] + 1
                    following.append(other)
        front = following
    return found


def compare(metric: str, world: World, may_be_empty: bool) -> int:
    """Hold every four counts of a world against the laws; how many there were."""
    compared = 0

    def step(cells: Cells) -> Iterator[Cells]:
        return (other for other in world.neighbours[cells] if may_be_empty or allowed(metric, other))

    for cells in world.local:
        if not may_be_empty and not allowed(metric, cells):
            with pytest.raises(ValueError, match="at least 1"):
                sensitivities(metric, LabelGroupCounts(*cells), scores=False)
            continue
        compared += 1
        reached = distances(cells, step)
        local = max(world.local[cells], 0.0)
        labels = (cells[0] + cells[1], cells[2] + cells[3])
        overall = max(
            max(value, 0.0)
            for other, value in world.local.items()
            if (other[0] + other[1], other[2] + other[3]) == labels and (may_be_empty or allowed(metric, other))
        )
        for beta in BETAS:
            smooth = max(math.exp(-beta * k) * max(world.local[other], 0.0) for other, k in reached.items())
            law = sensitivities(metric, LabelGroupCounts(*cells), beta, scores=False, may_be_empty=may_be_empty)
            assert (law.local, law.overall, law.smooth) == (
                pytest.approx(local, abs=1e-12),
                pytest.approx(overall, abs=1e-12),
                pytest.approx(smooth, abs=1e-12),
            ), (cells, beta)
    return compared


@pytest.mark.parametrize(
    ("metric", "most"),
    [*((metric, 3) for metric in ("sp", "abs_eo", "abs_oad", "eodds_max", "ppv")),
     *(pytest.param(metric, 5, marks=pytest.mark.slow) for metric in BOUNDED)],
)  # fmt: skip
def test_binary_sensitivities_are_the_worst_case_over_persons(metric: str, most: int) -> None:
    for n, may_be_empty in itertools.product(range(1, most + 1), (False, True)):
        by_person, by_cell = persons(metric, n, may_be_empty), cell_sums(metric, n, may_be_empty)
        # The quicker enumeration that goes on to n = 6 and 10 is the same one.
        assert by_cell.neighbours == by_person.neighbours
        assert by_cell.local == pytest.approx(by_person.local, abs=1e-12)
        assert compare(metric, by_person, may_be_empty) or n == 1


@pytest.mark.parametrize(("metric", "may_be_empty"), [("abs_sp", False), ("eodds_sum", True)])
def test_binary_sensitivities_are_the_worst_case_over_cells(metric: str, may_be_empty: bool) -> None:
    assert compare(metric, cell_sums(metric, 6, may_be_empty), may_be_empty) >= 20


@pytest.mark.slow(seconds=1)
@pytest.mark.parametrize("n", range(5, 11))
@pytest.mark.parametrize("metric", BOUNDED)
def test_binary_sensitivities_up_to_ten_people(metric: str, n: int) -> None:
    for may_be_empty in (False, True):
        assert compare(metric, cell_sums(metric, n, may_be_empty), may_be_empty) >= (20 if n > 5 else 12)


@pytest.mark.slow(seconds=1.5)
@pytest.mark.parametrize("metric", BOUNDED)
def test_binary_sensitivities_of_seven_persons(metric: str) -> None:
    compare(metric, persons(metric, 7, False), False)


@pytest.mark.parametrize("may_be_empty", [False, True])
def test_two_counts_take_the_worst_case_over_what_they_leave_open(may_be_empty: bool) -> None:
    for metric, n in itertools.product(ONE_STRATUM, range(1, 4)):
        worst: dict[tuple[int, int], float] = {}
        for cells, value in cell_sums(metric, n, may_be_empty).local.items():
            (groups,) = strata(metric, cells)
            worst[groups] = max(worst.get(groups, 0.0), value)
        for groups, value in worst.items():
            if may_be_empty or min(groups) > 0:
                found = local_sensitivity(metric, *groups, scores=False, may_be_empty=may_be_empty)
                assert found == pytest.approx(value, abs=1e-12)


# --- groups of at least g


def compare_from(metric: str, world: World, least: int) -> int:
    """Hold a world against the laws for neighbours that have at least so many of each group; how many there were."""
    known = {cells for cells in world.local if allowed(metric, cells, least)}
    local = {
        cells: max((world.moves[cells, other] for other in world.neighbours[cells] & known), default=0.0)
        for cells in known
    }
    local = {cells: max(value, 0.0) for cells, value in local.items()}
    for cells in world.local.keys() - known:
        with pytest.raises(ValueError, match=f"at least {least}"):
            sensitivities(metric, LabelGroupCounts(*cells), scores=False, minimum_group=least)
    for cells in known:
        reached = distances(cells, lambda one: iter(world.neighbours[one] & known))
        overall = max(local[other] for other in known if labels_of(other) == labels_of(cells))
        for beta in BETAS:
            smooth = max(math.exp(-beta * k) * local[other] for other, k in reached.items())
            law = sensitivities(metric, LabelGroupCounts(*cells), beta, scores=False, minimum_group=least)
            found = (law.local, law.overall, law.smooth)
            assert found == pytest.approx((local[cells], overall, smooth), abs=1e-12), (cells, beta)
    return len(known)


def labels_of(cells: Cells) -> tuple[int, int]:
    return cells[0] + cells[1], cells[2] + cells[3]


@pytest.mark.parametrize(
    ("metric", "most"),
    [*((metric, 5) for metric in ("abs_sp", "eodds_sum")),
     *(pytest.param(metric, 9, marks=pytest.mark.slow(seconds=1.5)) for metric in BOUNDED)],
)  # fmt: skip
def test_groups_of_at_least_g_move_a_metric_as_far_as_the_laws_say(metric: str, most: int) -> None:
    for n in range(1, most + 1):
        for least in range(1, n // 2 + 2):
            compared = compare_from(metric, cell_sums(metric, n, False), least)
            assert compared if n >= 2 * least else not compared


@pytest.mark.parametrize("metric", ["abs_sp", "eodds_sum"])
def test_a_sensitivity_for_larger_groups_than_there_are_is_caught(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # The broken twin: at g + 1 instead of g.
    sound = sensitivities

    def of_larger(
        metric: str, counts: LabelGroupCounts, *args: float, minimum_group: int, **how: bool
    ) -> Sensitivities:
        try:
            return sound(metric, counts, *args, minimum_group=minimum_group + 1, **how)
        except ValueError:
            return sound(metric, counts, *args, minimum_group=minimum_group, **how)

    monkeypatch.setitem(globals(), "sensitivities", of_larger)
    for least in (1, 2):
        with pytest.raises(AssertionError):
            compare_from(metric, cell_sums(metric, 6, False), least)


def test_smooth_sensitivity_of_groups_of_at_least_g_is_its_definition_and_smooth() -> None:
    for metric, scores, beta in (
        ("sp", True, 0.3),
        ("abs_sp", True, 0.01),
        ("abs_sp", False, 0.3),
        ("abs_sp", False, 0.01),
        ("ppv", False, 0.0),
    ):
        for n in (5, 12, 31, 40):
            for least in range(1, n // 2 + 1):
                how: dict[str, Any] = {"scores": scores, "minimum_group": least}
                counts = [(n0, n - n0) for n0 in range(least, n - least + 1)]
                local = np.array([local_sensitivity(metric, *c, **how) for c in counts])
                smooth = np.array([smooth_sensitivity(metric, *c, beta, **how) for c in counts])
                steps = np.abs(np.subtract.outer(np.arange(len(counts)), np.arange(len(counts))))
                np.testing.assert_allclose(smooth, (np.exp(-beta * steps) * local).max(axis=1), rtol=1e-12)
                for one, two in ((smooth[1:], smooth[:-1]), (smooth[:-1], smooth[1:])):
                    assert (one <= math.exp(beta) * two * (1 + 1e-12)).all()
                assert global_sensitivity(metric, n, **how) == local.max()
                if scores:
                    closed = (1 / (least + 1) + 1 / (n - least)) * (1 if metric == "sp" else n / (n + 1))
                    assert local.max() == pytest.approx(closed if n > 2 * least else 0.0)


def test_groups_of_at_least_g_are_a_whole_number_and_not_empty() -> None:
    for least in (0, -1, 1.5, math.nan):
        with pytest.raises(ValueError, match="minimum_group"):
            global_sensitivity("sp", 10, minimum_group=least)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="has no minimum"):
        local_sensitivity("sp", 4, 5, may_be_empty=True, minimum_group=2)


# --- scores


def row(counts: Cells, label: int) -> Array:
    """The vector w for which a stratum's gap is w @ h, h being listed cell by cell."""
    n0, n1 = counts[2 * label], counts[2 * label + 1]
    weights = np.concatenate([np.full(n0, -1 / n0), np.full(n1, 1 / n1)])
    whole = np.zeros(sum(counts))
    whole[label * (counts[0] + counts[1]) :][: n0 + n1] = weights
    return whole


def largest_rise(ends: list[Array], starts: list[list[Array]]) -> float:
    """max over h of the largest of several `end @ h`, minus the sum over i of the largest of `starts[i] @ h`."""
    n, bounds_count = len(ends[0]), len(starts)
    above = np.array(
        [np.concatenate([start, -np.eye(bounds_count)[i]]) for i, several in enumerate(starts) for start in several]
    )
    rises = []
    for end in ends:
        cost = np.concatenate([-end, np.ones(bounds_count)])
        limits = [(0.0, 1.0)] * n + [(None, None)] * bounds_count
        solution = linprog(cost, A_ub=above, b_ub=np.zeros(len(above)), bounds=limits, method="highs")
        assert solution.status == 0
        rises.append(-solution.fun)
    return max(rises)


@pytest.mark.parametrize("metric", TWO_STRATA)
@pytest.mark.parametrize("cells", [(1, 2, 2, 1), (1, 4, 2, 2)])
def test_equalized_odds_with_scores_is_the_worst_case(metric: str, cells: Cells) -> None:
    worst = 0.0
    for label, leaving in itertools.product((0, 1), repeat=2):
        source, target = 2 * label + leaving, 2 * label + 1 - leaving
        if cells[source] < 2:
            continue
        # The person who flips stands at the border between the two cells of their label.
        after = list(cells)
        after[source], after[target] = after[source] - 1, after[target] + 1
        pairs = [(row(cells, 0), row(cells, 1)), (row(tuple(after), 0), row(tuple(after), 1))]  # type: ignore[arg-type]
        for (fpr, tpr), (other_fpr, other_tpr) in (pairs, pairs[::-1]):
            if metric == "eodds_max":
                ends = [other_fpr, -other_fpr, other_tpr, -other_tpr]
                starts = [[fpr, -fpr, tpr, -tpr]]
            else:
                ends = [i * other_fpr + j * other_tpr for i in (-1, 1) for j in (-1, 1)]
                starts = [[fpr, -fpr], [tpr, -tpr]]
            worst = max(worst, largest_rise(ends, starts))
    assert sensitivities(metric, LabelGroupCounts(*cells)).local == pytest.approx(worst, abs=1e-9)


@given(
    cells=st.tuples(*[st.integers(1, 12)] * 4),
    seed=st.integers(0, 2**32),
    binary=st.booleans(),
    metric=st.sampled_from([key for key in BOUNDED if key != "ppv"]),
)
def test_no_prediction_moves_a_metric_by_more(cells: Cells, seed: int, binary: bool, metric: str) -> None:
    rng = np.random.default_rng(seed)
    positive = np.array([(rng.random(count).round() if binary else rng.random(count)).sum() for count in cells])
    label, leaving, h = int(rng.integers(2)), int(rng.integers(2)), float(rng.integers(2))
    source, target = 2 * label + leaving, 2 * label + 1 - leaving
    if cells[source] < 2:
        return
    others = rng.random(cells[source] - 1)
    positive[source] = (others.round() if binary else others).sum() + h
    people = np.array(cells, float)
    moved_people, moved_positive = people.copy(), positive.copy()
    moved_people[[source, target]] += [-1, 1]
    moved_positive[[source, target]] += [-h, h]
    before, after = (
        metric_values(metric, each.reshape(2, 2, 1), sums.reshape(2, 2, 1))
        for each, sums in ((people, positive), (moved_people, moved_positive))
    )
    law = sensitivities(metric, LabelGroupCounts(*cells), 0.1, scores=not binary)
    assert abs(after - before).item() <= law.local + 1e-12
    assert law.smooth is not None
    assert law.local <= law.smooth <= law.overall * (1 + 1e-12)


def test_accuracy_takes_the_values_of_a_prediction() -> None:
    # So that oad has the sensitivities of sp, whatever the labels.
    for groups in [(1, 2), (3, 4), (10, 3)]:
        for scores in (True, False):
            assert local_sensitivity("oad", *groups, scores=scores) == local_sensitivity("sp", *groups)
            expected = local_sensitivity("abs_sp", *groups, scores=scores)
            assert local_sensitivity("abs_oad", *groups, scores=scores) == expected


# --- smoothness


def test_smooth_sensitivity_is_its_definition_and_smooth() -> None:
    for beta in (0.0, 0.01, 1.0):
        for may_be_empty in (False, True):
            for metric, scores in (("sp", True), ("abs_sp", True), ("abs_sp", False), ("ppv", False)):
                first = 0 if may_be_empty else 1
                for n in (*range(2, 8), 12, 31, 60):
                    counts = [(n0, n - n0) for n0 in range(first, n + 1 - first)]
                    local = np.array(
                        [local_sensitivity(metric, *c, scores=scores, may_be_empty=may_be_empty) for c in counts]
                    )
                    smooth = np.array(
                        [smooth_sensitivity(metric, *c, beta, scores=scores, may_be_empty=may_be_empty) for c in counts]
                    )
                    steps = np.abs(np.subtract.outer(np.arange(len(counts)), np.arange(len(counts))))
                    np.testing.assert_allclose(smooth, (np.exp(-beta * steps) * local).max(axis=1), rtol=1e-12)
                    assert (smooth[1:] <= math.exp(beta) * smooth[:-1] * (1 + 1e-12)).all()
                    assert (smooth[:-1] <= math.exp(beta) * smooth[1:] * (1 + 1e-12)).all()
                    overall = global_sensitivity(metric, n, scores=scores, may_be_empty=may_be_empty)
                    assert overall == local.max()
                    assert (
                        smooth_sensitivity(metric, *counts[-1], 0.0, scores=scores, may_be_empty=may_be_empty)
                        == overall
                    )


@pytest.mark.parametrize("scores", [True, False])
@pytest.mark.parametrize("metric", [*TWO_STRATA, "ppv"])
def test_metrics_of_all_four_counts_are_smooth(metric: str, scores: bool) -> None:
    rng = np.random.default_rng(3)
    for _ in range(100):
        cells = rng.integers(1, 16, 4)
        label, leaving = rng.integers(2, size=2)
        other = cells.copy()
        other[2 * label + leaving] -= 1
        other[2 * label + 1 - leaving] += 1
        if other.min() < 1:
            continue
        for beta in (0.01, 0.3):
            one, two = (
                sensitivities(metric, LabelGroupCounts(*map(int, each)), beta, scores=scores).smooth
                for each in (cells, other)
            )
            assert one is not None
            assert two is not None
            assert abs(math.log(one / two)) <= beta * (1 + 1e-9)


@pytest.mark.parametrize("n", [1000, 1001])
def test_the_search_for_the_smooth_value_misses_nothing_among_a_thousand(n: int) -> None:
    local = np.array([local_sensitivity("abs_sp", n0, n - n0, scores=False) for n0 in range(1, n)])
    for beta in (0.0, 1e-9, 1e-6, 1e-4, 1e-3, 0.01, 0.1, 1.0):
        for n0 in (1, 2, 3, 10, 31, 104, 250, 333, 334, 498, 499, 500, 501, 900, n - 1):
            definition = (np.exp(-beta * np.abs(np.arange(1, n) - n0)) * local).max()
            assert smooth_sensitivity("abs_sp", n0, n - n0, beta, scores=False) == pytest.approx(definition, rel=1e-12)


# --- statements of the module


def test_binary_predictions_move_an_absolute_gap_less_than_scores() -> None:
    for n in (*range(3, 30), 60, 101):
        for leaving in range(2, n):
            binary, scores = (flip_sensitivity("abs_sp", n, leaving, scores=kind) for kind in (False, True))
            assert binary <= scores * (1 + 1e-12)
            assert binary == pytest.approx(flip_sensitivity("abs_sp", n, n + 1 - leaving, scores=False), rel=1e-12)
            # Whole groups' worth: the rounding costs nothing.
            if (n - leaving) % leaving == 0:
                assert binary == pytest.approx(scores, rel=1e-12)


def test_the_closed_form_of_the_binary_global_sensitivity() -> None:
    for n in range(4, 60):
        expected = n / (2 * (n - 1)) if n % 2 == 0 else 1 / 2 + 1 / (n - 1) - 1 / (2 * (n - 2))
        assert global_sensitivity("abs_sp", n, scores=False) == pytest.approx(expected)


def test_three_people_with_binary_predictions() -> None:
    assert global_sensitivity("abs_sp", 3, scores=False) == pytest.approx(1 / 2)
    assert global_sensitivity("abs_sp", 3) == pytest.approx(3 / 4)


def test_a_binary_absolute_gap_may_move_further_when_the_groups_are_more_even() -> None:
    assert flip_sensitivity("abs_sp", 11, 6, scores=False) > flip_sensitivity("abs_sp", 11, 5, scores=False)


@pytest.mark.parametrize(("cells", "expected"), [((0, 3, 2, 0), 0.5), ((0, 0, 3, 2), 0.0)])
def test_predictive_parity_where_the_labels_say_who_is_in_which_group(cells: Cells, expected: float) -> None:
    law = sensitivities("ppv", LabelGroupCounts(*cells), 0.3, scores=False)
    assert law.local == expected
    assert law.overall == (1.0 if expected else 0.0)
    assert law.smooth == pytest.approx(math.exp(-0.3) if expected else 0.0)


@pytest.mark.parametrize("counts", [(10, 90), LabelGroupCounts(1, 2, 3, 4)])
def test_disparate_impact_is_not_bounded(counts: LabelGroupCounts | tuple[int, int]) -> None:
    law = sensitivities("di", counts, 0.1)
    assert (law.local, law.overall, law.smooth) == (math.inf,) * 3
    assert local_sensitivity("di", 3, 4) == global_sensitivity("di", 7) == smooth_sensitivity("di", 3, 4, 1) == math.inf


def test_a_stratum_without_people_adds_nothing_to_equalized_odds() -> None:
    law = sensitivities("eodds_sum", LabelGroupCounts(0, 0, 3, 4), 0.1)
    assert law.local == local_sensitivity("abs_eo", 3, 4)
    assert law.smooth == smooth_sensitivity("abs_eo", 3, 4, 0.1)
    with pytest.raises(ValueError, match="at least 1"):
        sensitivities("eodds_sum", LabelGroupCounts(0, 0, 0, 0))


@pytest.mark.parametrize("metric", TWO_STRATA)
def test_one_stratum_s_counts_are_refused_where_there_are_two(metric: str) -> None:
    calls: list[Callable[[], object]] = [
        lambda: local_sensitivity(metric, 3, 4),
        lambda: global_sensitivity(metric, 7),
        lambda: smooth_sensitivity(metric, 3, 4, 0.1),
        lambda: sensitivities(metric, (3, 4)),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=f"metric {metric} looks at two strata"):
            call()


def test_counts_that_are_none_are_refused() -> None:
    for cells in ((-1, 1, 1, 1), (1, 1, 1, 0.5), (1, math.nan, 1, 1)):
        with pytest.raises(ValueError, match="each count"):
            LabelGroupCounts(*cells)


def test_a_beta_out_of_range_is_refused() -> None:
    for beta in (-0.1, math.nan, math.inf):
        with pytest.raises(ValueError, match="beta"):
            sensitivities("sp", (3, 4), beta)
