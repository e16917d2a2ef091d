"""Deals of the inference game: disjoint rows for each party, and a bit for each model that is trained.

One trial is one split of the table. The referee keeps test rows to measure models on; compliance, where it is in the
game, gets as many rows of its own; the developer gets the scenario's share or half of the rest, the adversary what is
left.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from adversary.attacks import ATTACKS
from fairwall.arrays import Bytes, Floats
from fairwall.learning.defences import Settings
from fairwall.learning.defences.split import sizes
from fairwall.tables.people import LeftOut
from fairwall.tables.values import OTHERS
from sim.datasets import EncodedRows
from sim.games.cards import WRITTEN_DOWN, ComplianceCards, DealError, party_seed
from sim.games.inference.scenario import InferenceScenario
from sim.games.people import load
from sim.scenarios.sweep import Cell

TEST_SHARE, TEST_MOST = 0.2, 4000
"""Default share of the table held back as test rows, and the largest default number of them."""

MEMBERS_MOST = 2000
"""Largest number of the developer's rows that models are scored on, for comparison with rows not trained on."""


@dataclass(frozen=True, eq=False)
class DrawnPeople:
    """Rows of the table: features (rows, d), labels (rows,), groups (attributes, rows), and row numbers (rows,)."""

    features: Floats
    labels: Bytes
    groups: Bytes
    numbers: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class InferenceDeal:
    """One trial's cards.

    Attributes
    ----------
    bits : (victims,), dealt to the developer; the referee tells them to nobody else.
    developer, adversary, test : the parties' rows, and those that models are measured on.
    sides : (test rows,), number of the distribution, 0 or 1, that a test row is a sample of; -1 for neither.
    audited : rows that compliance audits on, where lambda is chosen by its answers. The developer gets their features.
    compliance : labels and groups of `audited`.
    left_out : rows of the table that no party holds, by reason.
    """

    deal_id: str
    scenario: InferenceScenario
    bits: Bytes = field(repr=False)
    developer: DrawnPeople
    adversary: DrawnPeople
    test: DrawnPeople
    sides: NDArray[np.int8] = field(repr=False)
    audited: DrawnPeople | None
    compliance: ComplianceCards | None
    seeds: dict[str, bytes] = field(repr=False)
    left_out: tuple[LeftOut, ...] = ()

    @property
    def member_rows(self) -> int:
        """Number of the developer's rows, from the first on, on which its models' scores are requested."""
        return min(MEMBERS_MOST, len(self.developer.labels))

    @property
    def table_rows(self) -> int:
        """Number of rows in the deal, of both groups."""
        hands = (self.developer, self.adversary, self.test, self.audited)
        return sum(len(hand.labels) for hand in hands if hand is not None)


def deal(cell: Cell[InferenceScenario], trial: int, deal_id: str, secret: bytes = WRITTEN_DOWN) -> InferenceDeal:
    """Draw the cards of one trial, see `Game`; split and bits do not depend on the defence, so cells share them."""
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
        name: DrawnPeople(table.encoded[rows], table.labels[rows].astype(np.uint8), groups[:, rows], rows)
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
    """Return the numbers of rows held back to measure on and of rows the developer trains on; some must remain."""
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


def _check_rows(scenario: InferenceScenario, groups: dict[str, Bytes]) -> None:
    """Refuse a deal in which a model's rows cannot be drawn: the developer's, or the adversary's without its probes."""
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


def sides(group: Bytes, purity: float, rng: np.random.Generator) -> NDArray[np.int8]:
    """Draw samples of the two distributions from rows of both groups, each 0 or 1 in `group`, of shape (rows,).

    `purity`, alpha in [1/2, 1], is the share of group d in distribution d. Returns each row's distribution, 0 or 1, or
    -1 for neither. With pure groups that is the row's group; otherwise each distribution has as many rows as the
    smaller group, and no row is in both.
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


def _bits(victims: int, rng: np.random.Generator) -> Bytes:
    """Flip a coin for every victim, again if all are equal, since an advantage is a difference of two rates."""
    while True:
        bits = rng.integers(0, 2, victims).astype(np.uint8)
        if 0 < bits.sum() < victims:
            return bits


def _table(scenario: InferenceScenario) -> tuple[EncodedRows, Bytes]:
    """Load the table, without protected features unless included, and groups, (attributes, rows), the game's first."""
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
