"""Deals of the inference game: rows for each party, no row in two hands, and a bit for each model that is trained.

One trial is one split of the table. The referee keeps test rows to measure models on; where compliance is to answer, it
gets rows of its own, as many; the developer gets what the scenario says or half of the rest, and the adversary what is
left.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from adversary.attacks import ATTACKS
from fairwall.learning.defences import Settings
from fairwall.learning.defences.split import sizes
from fairwall.tables.people import LeftOut
from fairwall.tables.values import OTHERS
from sim.datasets import Rows
from sim.games.cards import WRITTEN_DOWN, ComplianceCards, DealError, party_seed
from sim.games.inference.scenario import InferenceScenario
from sim.games.people import load
from sim.scenarios.sweep import Cell

TEST_SHARE, TEST_MOST = 0.2, 4000
"""The part of the table that is held back where the scenario does not say: of a large one less than a fifth will do."""

MEMBERS_MOST = 2000
"""How many of the developer's rows models are asked about, to compare them with rows nobody trained on."""


@dataclass(frozen=True, eq=False)
class Hand:
    """Hand of the table: features (rows, d), labels (rows,), groups (attributes, rows), and their numbers in it."""

    features: NDArray[np.float64]
    labels: NDArray[np.uint8]
    groups: NDArray[np.uint8]
    numbers: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class InferenceDeal:
    """One trial's cards.

    Attributes
    ----------
    bits : (victims,), for the developer; they stay with the referee otherwise.
    developer, adversary, test : whose rows are whose.
    sides : (test rows,), which of the two distributions a test row is a sample of, 0 or 1; -1 for neither.
    audited : the rows that compliance audits on, where lambda is chosen through it. The developer gets their features.
    compliance : their labels and groups, for compliance.
    left_out : the rows of the table that are in nobody's hand, by reason.
    """

    deal_id: str
    scenario: InferenceScenario
    bits: NDArray[np.uint8] = field(repr=False)
    developer: Hand
    adversary: Hand
    test: Hand
    sides: NDArray[np.int8] = field(repr=False)
    audited: Hand | None
    compliance: ComplianceCards | None
    seeds: dict[str, bytes] = field(repr=False)
    left_out: tuple[LeftOut, ...] = ()

    @property
    def member_rows(self) -> int:
        """Of how many of the developer's rows, from the first on, its models' scores are asked."""
        return min(MEMBERS_MOST, len(self.developer.labels))

    @property
    def table_rows(self) -> int:
        """How many rows are in somebody's hand: all of the table's two groups."""
        hands = (self.developer, self.adversary, self.test, self.audited)
        return sum(len(hand.labels) for hand in hands if hand is not None)


def deal(cell: Cell[InferenceScenario], trial: int, deal_id: str, secret: bytes = WRITTEN_DOWN) -> InferenceDeal:
    """Draw the cards of one trial, as `Game` says.

    The split and the bits do not depend on the defence: cells of a sweep are played on the same ones.
    """
    scenario = cell.scenario
    seed = scenario.scenario.seed + trial
    rng = np.random.default_rng(int.from_bytes(party_seed(secret, seed, "referee"), "big"))
    table, groups = _table(scenario)
    order = rng.permutation(len(table.labels))
    held_back, trained_on = _sizes(scenario, len(order))
    parts = {"test": order[:held_back]}
    rest = order[held_back:]
    if scenario.developer.lambdas:
        parts["compliance"], rest = rest[:held_back], rest[held_back:]
    parts |= {"developer": rest[:trained_on], "adversary": rest[trained_on:]}
    for name, rows in parts.items():
        for group in groups:
            cells = {(int(y), int(a)) for y, a in zip(table.labels[rows], group[rows], strict=True)}
            if len(cells) < 4:
                raise DealError(
                    f"data.source: {table.name} has too few rows: the {name}'s part misses a label or a group"
                )
    _check_rows(scenario, {name: groups[0, rows] for name, rows in parts.items()})
    bits = _bits(scenario.developer.victims, rng)
    hands = {
        name: Hand(table.encoded[rows], table.labels[rows].astype(np.uint8), groups[:, rows], rows)
        for name, rows in parts.items()
    }
    audited = hands.get("compliance")
    own = party_seed(secret, seed, "compliance")
    return InferenceDeal(
        deal_id=deal_id,
        scenario=scenario,
        bits=bits,
        developer=hands["developer"],
        adversary=hands["adversary"],
        test=hands["test"],
        sides=sides(hands["test"].groups[0], scenario.developer.purity, rng),
        audited=audited,
        compliance=ComplianceCards(audited.labels, audited.groups[0], own) if audited else None,
        seeds={party: party_seed(secret, seed, party) for party in ("developer", "adversary")},
        left_out=table.left_out,
    )


def _sizes(scenario: InferenceScenario, rows: int) -> tuple[int, int]:
    """Say how many of a table's rows are held back to measure on, and how many the developer trains on.

    A deal that leaves the adversary none is refused.
    """
    data = scenario.data
    held_back = min(TEST_MOST, int(TEST_SHARE * rows)) if data.test_share is None else round(data.test_share * rows)
    left = rows - held_back * (2 if scenario.developer.lambdas else 1)
    trained_on = left // 2 if data.train_share is None else round(data.train_share * rows)
    if trained_on >= left:
        raise DealError(
            f"data.train_share: {trained_on:,} of {rows:,} rows leave the adversary none; "
            f"{rows - left:,} are held back to measure and audit on"
        )
    return held_back, trained_on


def _check_rows(scenario: InferenceScenario, groups: dict[str, NDArray[np.uint8]]) -> None:
    """Refuse a deal in which a model's rows cannot be drawn: the developer's, or the adversary's besides its probes."""
    asked, adversary = scenario.developer, scenario.adversary
    settings = Settings(purity=asked.purity, rows=asked.rows or None, other_rows=asked.other_rows or None)
    trains = {"developer": 0}
    if any(ATTACKS[name].shadows for name in adversary.attack):
        trains["adversary"] = adversary.probes // 2
    for party, probes in trains.items():
        in_group = [int((groups[party] == group).sum()) for group in (0, 1)]
        rest = [size - min(probes, *(size // 2 for size in in_group)) for size in in_group]
        for mine, others in (rest, rest[::-1]):
            try:
                sizes(mine, others, settings)
            except ValueError as error:
                raise DealError(f"developer.rows: in the {party}'s part, {error}") from None


def sides(group: NDArray[np.uint8], purity: float, rng: np.random.Generator) -> NDArray[np.int8]:
    """Draw samples of the two distributions from rows of both groups, each 0 or 1 in ``group``, of shape (rows,).

    The purity is alpha, in [1/2, 1]: the share of group d in distribution d. Given back are 0 or 1, and -1 for a row of
    neither, of shape (rows,): with pure groups each row's own group; else as many rows of each distribution as the
    smaller group has, none in both.
    """
    if purity == 1:
        return group.astype(np.int8)
    drawn = np.full(len(group), -1, np.int8)
    each = int(min((group == 0).sum(), (group == 1).sum()))
    own = round(purity * each)
    for a in (0, 1):
        members = rng.permutation(np.flatnonzero(group == a))[:each]
        drawn[members[:own]] = a
        drawn[members[own:]] = 1 - a
    return drawn


def _bits(victims: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Flip a coin for every victim; again if all fell alike, since an advantage is a difference of two rates."""
    while True:
        bits = rng.integers(0, 2, victims).astype(np.uint8)
        if 0 < bits.sum() < victims:
            return bits


def _table(scenario: InferenceScenario) -> tuple[Rows, NDArray[np.uint8]]:
    """Load the table, and every attribute's groups, the game's first: shape (attributes, rows).

    No protected attribute is a feature, unless the scenario includes the game's own.
    """
    data = scenario.data
    roles = data.roles
    others = data.also_protected
    table = load(data.source, (*data.drop, *others), tuple(roles.items()), data.include_protected)
    groups = [table.protected]
    for name, advantaged in others.items():
        roles |= {"protected": name, "advantaged": advantaged, "disadvantaged": OTHERS}
        other = load(data.source, data.drop, tuple(roles.items()))
        if not np.array_equal(other.labels, table.labels):
            raise DealError(
                f"data.also_protected: {name} leaves out other rows of {table.name} than {data.protected} does"
            )
        groups.append(other.protected)
    return table, np.stack(groups).astype(np.uint8)
