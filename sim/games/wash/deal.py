"""Deals of the washing game: audited rows, drawn from those outside the training rows and the public sample.

A customer checks some of the audited rows.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Bytes, Floats
from fairwall.tables.people import LeftOut
from sim.datasets import EncodedRows
from sim.games.cards import WRITTEN_DOWN, ComplianceCards, DealError, party_seed
from sim.games.people import loaded
from sim.games.wash.scenario import WashData, WashScenario
from sim.scenarios.sweep import Cell


@dataclass(frozen=True, eq=False)
class ExtraRows:
    """The developer's other rows: training rows without groups, and a public sample, the disadvantaged first."""

    training_features: Floats
    training_labels: Bytes
    sample_features: Floats
    disadvantaged: int


@dataclass(frozen=True, eq=False)
class WashDeal:
    """One trial's cards: features of the audited rows, (n, d), row numbers of the checked ones, (k,), and seeds."""

    deal_id: str
    scenario: WashScenario
    compliance: ComplianceCards = field(repr=False)
    features: Floats
    known: ExtraRows
    checked: NDArray[np.intp]
    seeds: dict[str, bytes] = field(repr=False)
    left_out: tuple[LeftOut, ...] = ()

    @property
    def disadvantaged(self) -> Floats:
        """Whether each audited person is disadvantaged, 1.0 or 0.0: (n,)."""
        return np.asarray(1.0 - self.compliance.protected, np.float64)


def deal(cell: Cell[WashScenario], trial: int, deal_id: str, secret: bytes = WRITTEN_DOWN) -> WashDeal:
    """Draw the cards of one trial, see `Game`."""
    scenario, data = cell.scenario, cell.scenario.data
    seed = scenario.scenario.seed + trial
    table, known, rest = _split(data)
    if data.test_size > len(rest):
        raise DealError(
            f"data.test_size: {data.test_size} people wanted, {len(rest)} of {table.name} are left by "
            f"data.training = {data.training} and data.sample = {data.sample}"
        )
    rng = np.random.default_rng(int.from_bytes(party_seed(secret, seed, "referee"), "big"))
    rows = rng.choice(rest, data.test_size, replace=False)
    groups = table.protected[rows]
    if groups.min() == groups.max():
        raise DealError(f"data.test_size: all {data.test_size} people are of one group; draw more")
    return WashDeal(
        deal_id=deal_id,
        scenario=scenario,
        compliance=ComplianceCards(table.labels[rows], groups, party_seed(secret, seed, "compliance")),
        features=table.encoded[rows],
        known=known,
        checked=np.sort(rng.choice(data.test_size, scenario.wash.checks, replace=False)),
        seeds={party: party_seed(secret, seed, party) for party in ("developer", "adversary")},
        left_out=table.left_out,
    )


@functools.lru_cache(maxsize=4)
def _split(data: WashData) -> tuple[EncodedRows, ExtraRows, NDArray[np.intp]]:
    table, training, sample = loaded(data), data.training, data.sample
    if training + sample >= len(table.labels):
        raise DealError(
            f"data.training: {training} rows, and data.sample's {sample}, leave none of {len(table.labels)} to audit"
        )
    order = np.random.default_rng(0).permutation(len(table.labels))
    trained, public, rest = np.split(order, [training, training + sample])
    public = public[np.argsort(table.protected[public], kind="stable")]
    disadvantaged = int((table.protected[public] == 0).sum())
    if not 0 < disadvantaged < sample:
        raise DealError(f"data.sample: all {sample} people are of one group; draw more")
    labels = table.labels[trained].astype(np.uint8)
    if labels.min() == labels.max():
        raise DealError(f"data.training: all {training} rows have one label; draw more")
    return table, ExtraRows(table.encoded[trained], labels, table.encoded[public], disadvantaged), np.sort(rest)
