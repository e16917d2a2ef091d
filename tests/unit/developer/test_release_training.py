"""What the release game's developer trains: the paper's undefended models to the last bit, and the controls."""

from __future__ import annotations

import csv
import gzip
import sys
from pathlib import Path

import numpy as np
import pytest

from developer.release.training import BoostingUnavailable, constant, require_lightgbm, train
from fairwall.errors import UserError
from fairwall.laws.metrics.utility import UTILITIES
from fairwall.learning.design import design, one_hot
from fairwall.learning.forest import Boosting, from_array, to_array
from sim.datasets.coded import CodedTable, load_coded, stratified_split
from tests.support.fairness_figures import fairness_figures

SHARED = Path(__file__).parents[4] / "shared" / "data"
OFFICIAL = SHARED / "ldp_official_nondp_seeds.csv.gz"
TABLES = {
    "LSAC": ("lsac-coded", "db_LSAC.csv.gz"),
    "adult": ("adult-26k", "db_adult_processed_26k.csv.gz"),
    "ACSCoverage": ("acs-coverage", "db_ACSCoverage.csv.gz"),
}
NAMES = {"auc_hard": "auc", "auc": None}
"""Utilities that the official files call otherwise or do not have."""

SMALL = Boosting(depth=4, rate=0.2, trees=20)


def table_of(dataset: str) -> CodedTable:
    name, file = TABLES[dataset]
    for path in (OFFICIAL, SHARED / file):
        if not path.is_file():
            pytest.skip(f"{path.name} is not at hand")
    return load_coded(f"{name}:{SHARED / file}")


def official(dataset: str) -> dict[int, dict[str, float]]:
    with gzip.open(OFFICIAL, "rt") as lines:
        rows = [row for row in csv.DictReader(lines) if row.pop("dataset") == dataset]
    return {int(row.pop("seed")): {name: float(value) for name, value in row.items()} for row in rows}


def matrix(table: CodedTable, *, without_sensitive: bool = False) -> np.ndarray:
    """Build it from the columns in the open and clean encodings, as both sides of the game do."""
    places = [table.columns.index(column) for column in table.sensitive]
    clear = [place for place in range(len(table.columns)) if place not in places]
    encodings = {place: one_hot(table.values[:, place], table.sizes[place]) for place in places}
    sizes = [table.sizes[place] for place in clear]
    return design(table.values[:, clear], sizes, {} if without_sensitive else encodings)


def figures(table: CodedTable, features: np.ndarray, seed: int) -> dict[str, float]:
    """Split, train, let the forest travel, and measure it on the test rows."""
    rows, asked = stratified_split(table.labels, seed)
    trained = train(features[rows], table.labels[rows], table.boosting, seed)
    forest = from_array(to_array(trained), features.shape[1])
    scores, labels = forest.scores(features[asked]), table.labels[asked]
    decisions = forest.labels(features[asked])
    group = table.values[asked, table.columns.index(table.protected)].astype(np.uint8)
    utilities = {NAMES.get(key, key): utility.measure(labels, decisions, scores) for key, utility in UTILITIES.items()}
    return {name: value for name, value in utilities.items() if name} | fairness_figures(decisions, labels, group)


def differs(dataset: str, seeds: list[int] | None) -> float:
    """Give the largest difference to the official figures."""
    table = table_of(dataset)
    pytest.importorskip("lightgbm")
    expected, features = official(dataset), matrix(table)
    worst = 0.0
    for seed in seeds or expected:
        found = figures(table, features, seed)
        assert found.keys() == expected[seed].keys()
        worst = max(worst, *(abs(found[name] - value) for name, value in expected[seed].items()))
    return worst


@pytest.mark.check
def test_the_first_undefended_models_of_lsac_are_the_official_ones() -> None:
    assert differs("LSAC", [0, 1]) <= 1e-12


@pytest.mark.slow(seconds=100)
@pytest.mark.timeout(900)
@pytest.mark.parametrize("dataset", TABLES)
def test_every_undefended_model_is_the_official_one(dataset: str) -> None:
    assert differs(dataset, None) <= 1e-12


@pytest.mark.slow
def test_the_match_notices_columns_that_are_left_as_codes_or_left_out() -> None:
    """Ways to read the paper which its code does not follow."""
    table = table_of("LSAC")
    pytest.importorskip("lightgbm")
    expected = official("LSAC")[0]
    for features in (table.values.astype(np.uint8), matrix(table, without_sensitive=True)):
        found = figures(table, features, 0)
        assert max(abs(found[name] - value) for name, value in expected.items()) > 1e-4


def toy(rows: int = 500) -> tuple[np.ndarray, np.ndarray]:
    draws = np.random.default_rng(1)
    codes = draws.integers(0, 4, (rows, 3))
    return design(codes, (4, 4, 4), {}), (codes[:, 0] + draws.integers(0, 3, rows) > 2).astype(np.uint8)


def test_training_again_gives_the_same_forest() -> None:
    pytest.importorskip("lightgbm")
    features, labels = toy()
    once, again = (to_array(train(features, labels, SMALL, seed=3)) for _ in range(2))
    assert np.array_equal(once, again)


def test_labels_that_no_feature_tells_anything_about_still_give_a_forest() -> None:
    pytest.importorskip("lightgbm")
    labels = np.array([0, 1, 1] * 20, np.uint8)
    forest = train(np.zeros((60, 2), np.uint8), labels, SMALL, seed=0)
    assert forest.labels(np.zeros((4, 2), np.uint8)).tolist() == [1, 1, 1, 1]


def test_the_constant_predictor_says_what_most_labels_are() -> None:
    for labels, answer in (([0, 0, 1], 0), ([1, 0, 1], 1), ([0, 1], 0), ([1, 1], 1), ([0], 0)):
        told = np.array(labels, np.uint8)
        assert constant(told).labels(np.zeros((3, 5), np.uint8)).tolist() == [answer] * 3
        if len(set(labels)) == 1:
            trained = train(np.zeros((len(labels), 1), np.uint8), told, SMALL, seed=0)
            assert np.array_equal(to_array(trained), to_array(constant(told)))


def test_without_lightgbm_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    features, labels = toy()
    for refuse in (require_lightgbm, lambda: train(features, labels, SMALL, 0)):
        with pytest.raises(BoostingUnavailable, match=r"pip install 'fairwall\[release\]'") as refused:
            refuse()
        assert isinstance(refused.value, UserError)
