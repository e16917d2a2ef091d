"""Deals of the training game: rows to train on and to measure on, and canaries, which a coin puts into training.

Cells share the splits of the table, one per trial.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Bytes, Floats
from fairwall.game.v1 import training_service_pb2 as training
from fairwall.learning.backend import require_pytorch
from fairwall.tables.people import LeftOut
from sim.datasets import EncodedRows
from sim.datasets.synthetic import CASE_STUDY, case_study
from sim.games.cards import WRITTEN_DOWN, ComplianceCards, DealError, StatisticsCards, party_seed
from sim.games.people import loaded
from sim.games.training.scenario import TrainingData, TrainingScenario
from sim.scenarios.sweep import Cell


@dataclass(frozen=True, eq=False)
class TableRows:
    """Rows of the table: features (rows, d), labels (rows,), and protected (rows,)."""

    features: Floats
    labels: Bytes
    protected: Bytes = field(repr=False)


@dataclass(frozen=True, eq=False)
class TrainingDeal:
    """One trial's cards.

    Attributes
    ----------
    people, test : rows to train on, canaries included, and rows that models are measured on.
    public_rows : number of public rows, the first of `people`; compliance does not get their attributes.
    canaries : rows that the adversary guesses about, with the labels they have in training.
    inside : (canaries,), 1 for those trained on.
    base_rates : (2,), each group's rate of label 1 in the whole table.
    columns : names of the features.
    """

    deal_id: str
    scenario: TrainingScenario
    people: TableRows
    test: TableRows
    public_rows: int
    canaries: TableRows
    inside: Bytes = field(repr=False)
    base_rates: tuple[float, float]
    columns: tuple[str, ...]
    seed: bytes = field(repr=False)
    compliance: ComplianceCards | None
    left_out: tuple[LeftOut, ...] = ()

    @property
    def terms(self) -> training.ModelTerms:
        """The training settings that all parties know."""
        asked = self.scenario.training
        return training.ModelTerms(
            model=asked.model,
            practice=asked.practice,
            epsilon=asked.epsilon,
            delta=asked.delta,
            statistics_share=asked.statistics_share,
            strength=asked.strength,
            steps=asked.steps,
            batch=asked.batch,
        )

    @property
    def dealt(self) -> dict[str, NDArray[Any]]:
        """The developer's arrays by name."""
        people = self.people
        held = {"protected": people.protected} if self.scenario.training.holds_protected else {}
        return {"features": people.features, "labels": people.labels, **held, "test_features": self.test.features}

    @property
    def private(self) -> TableRows:
        """The rows trained on, without the public ones."""
        own, public = self.people, self.public_rows
        return TableRows(own.features[public:], own.labels[public:], own.protected[public:])


def deal(cell: Cell[TrainingScenario], trial: int, deal_id: str, secret: bytes = WRITTEN_DOWN) -> TrainingDeal:
    """Draw the cards of one trial, see `Game`; UserError if a network is to be trained without PyTorch."""
    scenario = cell.scenario
    seed, asked = scenario.scenario.seed + trial, scenario.training
    rng = np.random.default_rng(int.from_bytes(party_seed(secret, seed, "referee"), "big"))
    if scenario.network:
        require_pytorch()
    if asked.practice == "synthetic" and find_spec("mbi") is None:
        raise DealError("training.practice: synthetic rows need AIM: pip install 'fairwall[synthetic]'")
    table = case_study() if scenario.data.source == CASE_STUDY else loaded(scenario.data)
    order = rng.permutation(len(table.labels))
    tested = round(scenario.data.test_share * len(order))
    test, rest = order[:tested], order[tested:]
    if asked.canaries > len(rest):
        raise DealError(f"training.canaries: {table.name} has {len(rest):,} people to train on, not {asked.canaries:,}")
    canaries, rest = rest[: asked.canaries], rest[asked.canaries :]
    own = _drawn(scenario.data, table, rest)
    inside = rng.integers(2, size=len(canaries)).astype(np.uint8)
    # Mislabelled: a model that fits a wrong label has most probably been trained on it.
    labels = table.labels.copy()
    labels[canaries] = 1 - labels[canaries]
    public = round(scenario.data.public_share * len(own))
    private = rng.permutation(np.concatenate([own[public:], canaries[inside == 1]]))
    own = np.concatenate([own[:public], private])
    for name, rows in (("the people trained on", own), ("the people tested on", test)):
        _require_all(table, name, rows)
    people = _hand(table, labels, own)
    return TrainingDeal(
        deal_id=deal_id,
        scenario=scenario,
        people=people,
        test=_hand(table, labels, test),
        public_rows=public,
        canaries=_hand(table, labels, canaries),
        inside=inside,
        base_rates=tuple(float(table.labels[table.protected == group].mean()) for group in (0, 1)),  # type: ignore[arg-type]
        columns=table.feature_names,
        seed=party_seed(secret, seed, "developer"),
        compliance=_compliance(scenario, people.protected[public:], party_seed(secret, seed, "compliance")),
        left_out=table.left_out,
    )


def _drawn(data: TrainingData, table: EncodedRows, rest: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the rows to train on, in the order drawn, of the scenario's size and share of disadvantaged people."""
    many = data.people or len(rest)
    if many > len(rest):
        raise DealError(f"data.people: {table.name} has {len(rest):,} people left to train on, not {many:,}")
    if data.disadvantaged_share is None:
        return rest[:many]
    few = round(data.disadvantaged_share * many)
    places = [np.flatnonzero(table.protected[rest] == group) for group in (0, 1)]
    for group, name, wanted in ((0, "disadvantaged", few), (1, "advantaged", many - few)):
        if not 0 < wanted <= len(places[group]):
            raise DealError(
                f"data.disadvantaged_share: of {many:,} people {wanted:,} would be {name}, and {table.name} has "
                f"{len(places[group]):,} of them left to train on"
            )
    chosen = np.sort(np.concatenate([places[0][:few], places[1][: many - few]]))
    return np.asarray(rest[chosen])


def _require_all(table: EncodedRows, name: str, rows: NDArray[np.intp]) -> None:
    for values, kind in ((table.protected[rows], "group"), (table.labels[rows], "label")):
        if len(np.unique(values)) < 2:
            raise DealError(f"data.source: {table.name} has too few rows: {name} are all of one {kind}")


def _hand(table: EncodedRows, labels: Bytes, rows: NDArray[np.intp]) -> TableRows:
    return TableRows(table.encoded[rows], labels[rows].astype(np.uint8), table.protected[rows].astype(np.uint8))


def _compliance(scenario: TrainingScenario, protected: Bytes, seed: bytes) -> ComplianceCards | None:
    if not scenario.told:
        return None
    purse = StatisticsCards(scenario.epsilon, scenario.compliance.delta)
    return ComplianceCards(np.empty(0, np.uint8), protected, seed, statistics=purse)
