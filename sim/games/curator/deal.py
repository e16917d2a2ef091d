"""Deals of the curator game: people of a table, the way compliance cheats, and the regulator's extra knowledge."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from compliance.games.curator import PICKED
from fairwall.arrays import Floats
from fairwall.tables.people import LeftOut
from sim.datasets import EncodedRows
from sim.games.cards import WRITTEN_DOWN, ComplianceCards, DealError, party_seed
from sim.games.curator.scenario import CuratorScenario
from sim.games.people import DRAWS_MAX, drawn, loaded
from sim.scenarios.sweep import Cell


@dataclass(frozen=True, eq=False)
class CuratorDeal:
    """One trial's cards.

    `people` and `others`, (rows, columns), are features, label and group of the people held by compliance and of as
    many other people as the sample shall have. Both are public to the regulator, and empty where no sample is shown.
    `seed` is the developer's, `own` the regulator's.
    """

    deal_id: str
    scenario: CuratorScenario
    compliance: ComplianceCards
    people: Floats = field(repr=False)
    others: Floats = field(repr=False)
    seed: bytes = field(repr=False)
    own: bytes = field(repr=False)
    left_out: tuple[LeftOut, ...] = ()


def deal(cell: Cell[CuratorScenario], trial: int, deal_id: str, secret: bytes = WRITTEN_DOWN) -> CuratorDeal:
    """Draw the cards of one trial, see `Game`."""
    scenario, data, asked = cell.scenario, cell.scenario.data, cell.scenario.curator
    seed = scenario.scenario.seed + trial
    own = party_seed(secret, seed, "referee")
    rng = np.random.default_rng([*own])
    table = loaded(data)
    wanted = data.people + asked.sample
    if wanted > len(table.labels):
        raise DealError(f"data.people: {wanted:,} people wanted, {table.name} has {len(table.labels):,}")
    chosen = drawn(
        lambda: rng.choice(len(table.labels), wanted, replace=False),
        lambda rows: np.bincount(table.protected[rows[: data.people]], minlength=2).min() >= asked.minimum_group,
        f"curator.minimum_group: a group had fewer than {asked.minimum_group} people in each of {DRAWS_MAX} draws of "
        f"{data.people:,}",
    )
    people, others = chosen[: data.people], chosen[data.people :]
    cheats = {"committed": scenario.committed, **asked.model_dump(exclude={"defence", "requests", "openings"})}
    return CuratorDeal(
        deal_id=deal_id,
        scenario=scenario,
        compliance=ComplianceCards(
            table.labels[people],
            table.protected[people],
            party_seed(secret, seed, "compliance"),
            table.encoded[people] if asked.cheat == PICKED and asked.strength > 1 else None,
            curator=cheats,
        ),
        people=_numbers(table, people if asked.sample else others),
        others=_numbers(table, others),
        seed=party_seed(secret, seed, "developer"),
        own=own,
        left_out=table.left_out,
    )


def _numbers(table: EncodedRows, rows: NDArray[np.intp]) -> Floats:
    return np.column_stack([table.encoded[rows], table.labels[rows], table.protected[rows]])
