"""Deals of the game of groups: people of a table, or of public shares, and how the developer is to ask about them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from compliance.answers.groups import GROUPS_MAX
from fairwall.tables.columns import Categories, Column
from fairwall.tables.reading import read
from sim.datasets import SHIPPED
from sim.games.cards import WRITTEN_DOWN, ComplianceCards, DealError, GroupCards, party_seed
from sim.games.groups.scenario import SYNTHETIC, GroupsScenario, GroupsSection
from sim.scenarios.sweep import Cell

_NONE = np.empty(0, np.uint8)


@dataclass(frozen=True, eq=False)
class GroupsDeal:
    """One trial's cards.

    Attributes
    ----------
    cells : (people,), everybody's group by number.
    shares : (groups,), how large each group is among all people like these: public.
    names : what the groups are called.
    seed : the developer's.
    """

    deal_id: str
    scenario: GroupsScenario
    compliance: ComplianceCards = field(repr=False)
    cells: NDArray[np.intp] = field(repr=False)
    shares: NDArray[np.float64]
    names: tuple[str, ...]
    seed: bytes = field(repr=False)
    left_out: tuple[()] = ()

    @property
    def groups(self) -> GroupCards:
        """By what people are counted."""
        assert self.compliance.groups is not None, "this game's"
        return self.compliance.groups


def deal(cell: Cell[GroupsScenario], trial: int, deal_id: str, secret: bytes = WRITTEN_DOWN) -> GroupsDeal:
    """Draw the cards of one trial, as `Game` says."""
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


_Drawn = tuple[GroupCards, NDArray[np.float64], tuple[str, ...]]
"""Everybody's groups; each group's share, and its name."""


def _synthetic(asked: GroupsSection, rng: np.random.Generator) -> _Drawn:
    shares = np.array(asked.shares) / math.fsum(asked.shares)
    codes = rng.choice(len(shares), (1, asked.people), p=shares).astype(np.uint8)
    names = tuple(f"group {number}" for number in range(1, len(shares) + 1))
    return GroupCards(("group",), (len(shares),), codes, asked.epsilon), shares, names


def _drawn(asked: GroupsSection, rng: np.random.Generator) -> _Drawn:
    """Draw people of a table, and tell the shares of the groups in all of it."""
    values, codes = _load(asked.source, asked.columns)
    sizes = tuple(map(len, values))
    people = codes.shape[1]
    if asked.people > people:
        raise DealError(f"groups.people: {asked.people} people wanted, {asked.source} has {people}")
    shares = np.bincount(_cells(codes, sizes), minlength=math.prod(sizes)) / people
    drawn = np.ascontiguousarray(codes[:, rng.choice(people, asked.people, replace=False)])
    names = tuple(" × ".join(each) for each in product(*values))
    return GroupCards(asked.columns, sizes, drawn, asked.epsilon), shares, names


def _cells(codes: NDArray[np.uint8], sizes: tuple[int, ...]) -> NDArray[np.intp]:
    """Return everybody's group by number, the last column's values the fastest, as compliance has them."""
    return np.asarray(np.ravel_multi_index(tuple(codes), sizes))


@lru_cache(maxsize=4)
def _load(source: str, columns: tuple[str, ...]) -> tuple[tuple[tuple[str, ...], ...], NDArray[np.uint8]]:
    """Read each column's values, and everybody's codes, shape (columns, people)."""
    path = SHIPPED[source].path if source in SHIPPED else Path(source)
    table = read(path, source, columns)
    found = [Categories.of(Column.of(source, column, table)) for column in columns]
    groups = math.prod(len(each.values) for each in found)
    if not 2 <= groups <= GROUPS_MAX:
        raise DealError(f"groups.columns: their values make {groups} groups; there must be 2 to {GROUPS_MAX}")
    return tuple(each.values for each in found), np.array([each.codes for each in found], np.uint8)
