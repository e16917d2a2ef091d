"""Deals of the disclosure game: a study with or without Alice, and a secret about her, drawn by the referee."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fairwall.laws.studies.disclosure import PriorKnowledge
from sim.games.cards import WRITTEN_DOWN, ComplianceCards, StudyCards, party_seed
from sim.games.disclosure.scenario import DisclosureScenario
from sim.scenarios.sweep import Cell

_NONE = np.empty(0, np.uint8)


@dataclass(frozen=True, eq=False)
class DisclosureDeal:
    """One trial's cards. `secret` is 0 or 1; `place` is the index of Alice's record, None if she does not take part."""

    deal_id: str
    scenario: DisclosureScenario
    secret: int = field(repr=False)
    place: int | None = field(repr=False)
    cell: int
    known: PriorKnowledge
    compliance: ComplianceCards = field(repr=False)
    left_out: tuple[()] = ()

    @property
    def study(self) -> StudyCards:
        """The study in compliance's cards."""
        assert self.compliance.study is not None, "this game's"
        return self.compliance.study


def deal(cell: Cell[DisclosureScenario], trial: int, deal_id: str, secret: bytes = WRITTEN_DOWN) -> DisclosureDeal:
    """Draw the cards of one trial: a function of the scenario, the trial's seed and the run's secret."""
    scenario, asked = cell.scenario, cell.scenario.disclosure
    seed = scenario.scenario.seed + trial
    rng = np.random.default_rng([*party_seed(secret, seed, "referee")])
    coin, fact = (int(one) for one in rng.integers(2, size=2))
    if asked.mode == "inferential":
        # Alice answers like the people of her cell.
        coin = int(rng.random() < (1 - asked.rate if fact else asked.rate))
    own = int(rng.integers(asked.cells)) if asked.mode == "identity" else 0
    cells = rng.integers(asked.cells, size=asked.people)
    rates = np.full(asked.people, 0.5)
    if asked.mode == "inferential":
        rates = np.where((cells == own) & (fact == 1), 1 - asked.rate, asked.rate)
    answers = (rng.random(asked.people) < rates).astype(np.uint8)
    takes_part = coin == 1 if asked.mode == "presence" else asked.alice == "in"
    alike = cells == own
    known = PriorKnowledge(
        mode=asked.mode,
        epsilon=asked.epsilon,
        others=int(alike.sum()),
        others_yes=int(answers[alike].sum()) if asked.knows == "others" else None,
        takes_part=None if asked.mode == "presence" else takes_part,
        rate=asked.rate,
    )
    place = int(rng.integers(asked.people + 1))
    if takes_part:
        # The others' records are i.i.d., so a random place for hers makes the order reveal nothing.
        cells = np.insert(cells, place, own)
        answers = np.insert(answers, place, 1 if asked.mode == "presence" else coin)
    study = StudyCards(cells.astype(np.float64), answers, asked.cells, asked.records, asked.epsilon)
    return DisclosureDeal(
        deal_id=deal_id,
        scenario=scenario,
        secret=coin,
        place=place if takes_part else None,
        cell=own,
        known=known,
        compliance=ComplianceCards(_NONE, _NONE, party_seed(secret, seed, "compliance"), study=study),
    )
