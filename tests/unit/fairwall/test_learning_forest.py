"""A forest says what LightGBM says, bit for bit, and an array that is no forest is refused before it is evaluated."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fairwall.learning import forest as forest_module
from fairwall.learning.forest import MOST_NODES, Forest, from_array, to_array
from fairwall.rpc.arrays import from_message, to_message

Nodes = NDArray[np.float64]

LEAF = [-1.0, 0.5, -1.0, -1.0]


def stump(start: int = 0) -> list[list[float]]:
    """A tree of three nodes that asks whether feature 0 is at most 0."""
    return [[0.0, 0.0, start + 1.0, start + 2.0], [-1.0, -2.0, -1.0, -1.0], [-1.0, 1.0, -1.0, -1.0]]


def array(*nodes: list[float]) -> Nodes:
    return np.array(nodes)


def naive(forest: Forest, row: NDArray[np.float64]) -> float:
    """One row, one tree after the other, one node after the other."""
    total = 0.0
    for root in forest.first[:-1]:
        node = root
        while forest.feature[node] >= 0:
            low = row[forest.feature[node]] <= forest.number[node]
            node = forest.left[node] if low else forest.right[node]
        total += forest.number[node]
    return total


@st.composite
def forests(draw: st.DrawFn) -> Nodes:
    """Some random trees over three features, with thresholds that the features meet."""
    nodes: list[list[float]] = []

    def grow(depth: int) -> int:
        place = len(nodes)
        if depth == 0 or draw(st.booleans()):
            nodes.append([-1.0, draw(st.floats(-1e9, 1e9)), -1.0, -1.0])
            return place
        nodes.append([float(draw(st.integers(0, 2))), float(draw(st.integers(-2, 2))), 0.0, 0.0])
        nodes[place][2], nodes[place][3] = float(grow(depth - 1)), float(grow(depth - 1))
        return place

    for _ in range(draw(st.integers(1, 4))):
        grow(4)
    return np.array(nodes)


@given(nodes=forests(), seed=st.integers(0, 99))
@settings(max_examples=30)
def test_a_forest_is_evaluated_as_by_hand_and_travels_unchanged(nodes: Nodes, seed: int) -> None:
    features = np.random.default_rng(seed).integers(-3, 4, (40, 3))
    forest = from_array(nodes, 3)
    assert forest.scores(features).tolist() == [naive(forest, row) for row in features]
    assert forest.scores(features.astype(np.float64)).tolist() == forest.scores(features).tolist()
    arrived = from_message(to_message(to_array(forest)))
    assert np.array_equal(arrived, nodes)
    again = from_array(arrived, 3)
    assert all(np.array_equal(vars(again)[field], vars(forest)[field]) for field in vars(forest))


def test_rows_in_several_blocks_are_all_evaluated() -> None:
    features = np.arange(100_000)[:, None] % 7 - 3
    scores = from_array(array(*stump()), 1).scores(features)
    assert np.array_equal(scores, np.where(features[:, 0] <= 0, -2.0, 1.0))


def test_a_missing_feature_is_refused() -> None:
    with pytest.raises(ValueError, match="NaN"):
        from_array(array(*stump()), 1).scores(np.array([[np.nan]]))


def changed(row: int, column: int, value: float) -> Callable[[], Nodes]:
    def build() -> Nodes:
        nodes = array(*stump(), *stump(3))
        nodes[row, column] = value
        return nodes

    return build


HOSTILE: dict[str, tuple[Callable[[], NDArray[np.generic]], str]] = {
    "no node": (lambda: np.zeros((0, 4)), "1 to 262,144 nodes"),
    "too many nodes": (lambda: np.tile(LEAF, (MOST_NODES + 1, 1)), "1 to 262,144 nodes"),
    "another type": (lambda: np.zeros((3, 4), np.float32), "float64"),
    "another shape": (lambda: np.zeros((3, 5)), r"shape \(nodes, 4\)"),
    "one axis": (lambda: np.zeros(4), r"shape \(nodes, 4\)"),
    "a threshold that is NaN": (changed(0, 1, np.nan), "finite"),
    "an infinite leaf": (changed(1, 1, np.inf), "finite"),
    "an infinite child": (changed(0, 2, np.inf), "finite"),
    "leaves that add up to infinity": (lambda: array(*[[-1.0, 1e308, -1.0, -1.0]] * 20), "finite number"),
    "half a feature": (changed(0, 0, 0.5), "whole numbers"),
    "a feature below -1": (changed(0, 0, -2), "whole numbers"),
    "a feature that nobody has": (changed(0, 0, 1), "feature 1, of 1"),
    "a feature beyond all integers": (changed(0, 0, 1e300), "whole numbers"),
    "a child beyond all integers": (changed(0, 3, 1e300), "whole numbers"),
    "a child that is not there": (changed(3, 3, 6), "whole numbers"),
    "a leaf with a child": (changed(1, 2, 2), "leaf has a child"),
    "a node without a child": (changed(0, 2, -1), "after their parent"),
    "a node that is its own child": (changed(0, 2, 0), "after their parent"),
    "a cycle of two": (lambda: array([0, 0, 1, 2], [0, 0, 0, 3], LEAF, LEAF), "after their parent"),
    "twice the same child": (changed(0, 3, 1), "child of more than one"),
    "a node of two parents": (lambda: array([0, 0, 1, 2], [0, 0, 2, 3], LEAF, LEAF), "child of more than one"),
    "a child in another tree": (lambda: array([0, 0, 2, 3], LEAF, LEAF, LEAF), "one after the other"),
}


def refuses(check: Callable[..., Forest], name: str) -> bool:
    build, reason = HOSTILE[name]
    try:
        check(build(), 1)
    except ValueError as refused:
        return re.search(reason, str(refused)) is not None and str(refused).isprintable()
    except (IndexError, OverflowError, RuntimeWarning):
        pass
    return False


def twins() -> Iterator[Callable[..., Forest]]:
    """Write `from_array` anew without each of its refusals in turn."""
    tree = ast.parse(inspect.getsource(forest_module.from_array))
    for number in range(sum(isinstance(node, ast.Raise) for node in ast.walk(tree))):
        twin = ast.parse(inspect.getsource(forest_module.from_array))
        raises = [node for node in ast.walk(twin) if isinstance(node, ast.If) and isinstance(node.body[0], ast.Raise)]
        raises[number].body = [ast.copy_location(ast.Pass(), raises[number])]
        names = dict(vars(forest_module))
        exec(compile(twin, "twin", "exec"), names)  # noqa: S102
        yield names["from_array"]


def test_what_is_no_forest_is_refused_in_one_line_and_every_refusal_is_needed() -> None:
    assert [name for name in HOSTILE if not refuses(from_array, name)] == []
    for number, twin in enumerate(twins()):
        assert not all(refuses(twin, name) for name in HOSTILE), f"without refusal {number} the same is refused"


@given(st.lists(st.tuples(*[st.integers(-2, 6) for _ in range(3)]), min_size=1, max_size=6))
@settings(max_examples=150)
def test_whatever_is_accepted_is_evaluated_to_the_end(links: list[tuple[int, int, int]]) -> None:
    nodes = np.array([[feature, 1.0, left, right] for feature, left, right in links], dtype=np.float64)
    try:
        forest = from_array(nodes, 2)
    except ValueError:
        return
    # Each tree adds one leaf's 1.
    assert forest.scores(np.array([[0, 2]])).tolist() == [len(forest.first) - 1.0]


def random_tables() -> list[tuple[str, NDArray[np.generic]]]:
    draws = np.random.default_rng(5)
    codes = draws.integers(0, 6, (3000, 4))
    numbers = draws.normal(size=(3000, 4)).round(1)
    return [
        (
            "zeros and ones",
            np.concatenate([(codes[:, [j]] == np.arange(6)) for j in range(4)], axis=1).astype(np.uint8),
        ),
        ("whole numbers with negative ones", codes - 3),
        ("numbers with ties and zeros", np.where(draws.random(numbers.shape) < 0.4, 0.0, numbers)),
        ("numbers near zero", numbers * 1e-30),
    ]


@pytest.mark.parametrize(("name", "features"), random_tables(), ids=[name for name, _ in random_tables()])
def test_a_forest_says_what_lightgbm_says(name: str, features: NDArray[np.generic]) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    from developer.release.training import forest_of

    draws = np.random.default_rng(9)
    labels = (features[:, 0] * draws.normal(1, 1, len(features)) + features[:, 1] > features[:, 2]).astype(np.uint8)
    model = lightgbm.LGBMClassifier(n_estimators=12, learning_rate=0.3, n_jobs=1, verbose=-1)
    model.fit(features[:2000], labels[:2000])
    forest = forest_of(model.booster_.model_to_string(), features.shape[1])
    # Thresholds themselves are asked about, too.
    asked = features.astype(np.float64)
    tested = forest.feature >= 0
    at = np.zeros((int(tested.sum()), features.shape[1]))
    at[np.arange(len(at)), forest.feature[tested]] = forest.number[tested]
    # To LightGBM a number within 1e-35 of 0 is 0.
    at[np.abs(at) < 1e-34] = 0
    for rows in (asked, at, np.where(at == 0, 0, np.nextafter(at, 9))):
        assert np.array_equal(forest.scores(rows), model.predict(rows, raw_score=True))
        assert np.array_equal(forest.labels(rows), model.predict(rows))
