"""Deals of the game of groups: people drawn from a table or from public shares, and the developer's strategy."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from compliance.answers.groups import GROUPS_MAX
from fairwall.arrays import Bytes, Floats
from fairwall.tables.columns import Categories, TypedColumn
from fairwall.tables.reading import read
from sim.datasets import SHIPPED
from sim.games.cards import WRITTEN_DOWN, ComplianceCards, DealError, GroupCards, party_seed
from sim.games.groups.scenario import SYNTHETIC, GroupsScenario, GroupsSection
from sim.scenarios.sweep import Cell

_NONE = np.empty(0, np.uint8)


@dataclass(frozen=True, eq=False)
class GroupsDeal:
    """One trial's cards: group numbers `cells`, (people,), and the groups' public `shares`, (groups,), and names."""

    deal_id: str
    scenario: GroupsScenario
    compliance: ComplianceCards = field(repr=False)
    cells: NDArray[np.intp] = field(repr=False)
    shares: Floats
    names: tuple[str, ...]
    seed: bytes = field(repr=False)
    left_out: tuple[()] = ()

    @property
    def groups(self) -> GroupCards:
        """Compliance's groups."""
        assert self.compliance.groups is not None, "this game's"
        return self.compliance.groups


def deal(cell: Cell[GroupsScenario], trial: int, deal_id: str, secret: bytes = WRITTEN_DOWN) -> GroupsDeal:
    """Draw the cards of one trial, see `Game`."""
    scenario, asked = cell.scenario, cell.scenario.groups
    seed = scenario.scenario.seed + trial
    rng = np.random.default_rng([*party_seed(secret, seed, "referee")])
    groups, shares, names = _synthetic(asked, rng) if asked.source == SYNTHETIC else _drawn(asked, rng)
    cells = _cells(groups.codes, groups.sizes)
    if (cells == cells[0]).all():
        raise DealError(f"groups.people: all {asked.people} are of one group; draw more")
    return GroupsDeal(
        deal_id=deal_id,
        scenario=scenario,
        compliance=ComplianceCards(_NONE, _NONE, party_seed(secret, seed, "compliance"), groups=groups),
        cells=cells,
        shares=shares,
        names=names,
        seed=party_seed(secret, seed, "developer"),
    )


_Drawn = tuple[GroupCards, Floats, tuple[str, ...]]
"""The people's groups, each group's share, and the groups' names."""


def _synthetic(section: GroupsSection, rng: np.random.Generator) -> _Drawn:
    shares = np.array(section.shares) / math.fsum(section.shares)
    codes = rng.choice(len(shares), (1, section.people), p=shares).astype(np.uint8)
    names = tuple(f"group {number}" for number in range(1, len(shares) + 1))
    return GroupCards(("group",), (len(shares),), codes, section.epsilon), shares, names


def _drawn(section: GroupsSection, rng: np.random.Generator) -> _Drawn:
    values, codes = _load(section.source, section.columns)
    sizes = tuple(map(len, values))
    people = codes.shape[1]
    if section.people > people:
        raise DealError(f"groups.people: {section.people} people wanted, {section.source} has {people}")
    shares = np.bincount(_cells(codes, sizes), minlength=math.prod(sizes)) / people
    drawn = np.ascontiguousarray(codes[:, rng.choice(people, section.people, replace=False)])
    names = tuple(" × ".join(each) for each in product(*values))
    return GroupCards(section.columns, sizes, drawn, section.epsilon), shares, names


def _cells(codes: Bytes, sizes: tuple[int, ...]) -> NDArray[np.intp]:
    """Return each person's group number, in compliance's order: the last column varies fastest."""
    return np.asarray(np.ravel_multi_index(tuple(codes), sizes))


@lru_cache(maxsize=4)
def _load(source: str, columns: tuple[str, ...]) -> tuple[tuple[tuple[str, ...], ...], Bytes]:
    """Return each column's values, and the codes of all people, shape (columns, people)."""
    path = SHIPPED[source].path if source in SHIPPED else Path(source)
    table = read(path, source, columns)
    found = [Categories.of(TypedColumn.of(source, column, table)) for column in columns]
    groups = math.prod(len(each.values) for each in found)
    if not 2 <= groups <= GROUPS_MAX:
        raise DealError(f"groups.columns: their values make {groups} groups; there must be 2 to {GROUPS_MAX}")
    return tuple(each.values for each in found), np.array([each.codes for each in found], np.uint8)
