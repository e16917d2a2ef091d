"""What the scenario files of the game of the curator may hold."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from compliance.games.curator import CHEATS, HONEST, PICKED
from developer.curator.play import METRIC
from fairwall.laws.decimals import part_of
from sim.scenarios.scenario import ComplianceSection, Scenario, Section, TableSection, one_of

PEOPLE_MAX = 20_000
_FIXED = ComplianceSection(mechanism="laplace", metric=METRIC).model_dump(exclude={"epsilon"})


class CuratorData(TableSection):
    """The table, and how many people of it are asked about."""

    people: int = Field(default=1000, strict=True, ge=10, le=PEOPLE_MAX)


class CuratorSection(Section):
    """How compliance cheats, and what keeps it from that.

    Attributes
    ----------
    cheat : what compliance does, see `compliance.games.curator`; "none" is honest.
    strength : how many noises or samples it draws, how many rows it touches, or how many times less noise it adds.
    share : with what probability each request is cheated at.
    defence : "statistics", by which noise is tested for its law; "commitment", by which answers are recomputed; none.
    requests : how many models are asked about, each in a request of its own, for an equal part of the budget.
    openings : how many of the requests the regulator opens.
    minimum_group : how many people each group has at least, which noise counts on.
    sample : how many rows compliance shows as a sample of all, and in place of answers; 0 for none.
    passes : the largest gap in labels that the sample may have.
    """

    cheat: Annotated[str, one_of(CHEATS)] = HONEST
    strength: int = Field(default=1, strict=True, ge=1, le=10_000)
    share: float = Field(default=1.0, ge=0, le=1)
    defence: Literal["none", "statistics", "commitment"] = "none"
    requests: int = Field(default=100, strict=True, ge=0, le=1000)
    openings: int = Field(default=0, strict=True, ge=0)
    minimum_group: int = Field(default=50, strict=True, ge=1)
    sample: int = Field(default=0, strict=True, ge=0)
    passes: float = Field(default=0.05, strict=True, ge=0, lt=1)


class CuratorScenario(Scenario):
    """A validated scenario of the game of the curator."""

    data: CuratorData
    curator: CuratorSection

    @property
    def committed(self) -> bool:
        """Whether compliance commits before it admits anybody."""
        return self.curator.defence == "commitment"

    @property
    def share_of_epsilon(self) -> float:
        """What each request may cost."""
        return part_of(self.epsilon, max(1, self.curator.requests))

    def steps(self) -> tuple[str, ...]:
        """List the calls by which parties take a trial on."""
        first = ("ReleaseCommitment",) if self.committed else ()
        return (*first, "ServeTrial", "SubmitAnswers", "SubmitOpening", "SubmitAuditReport")

    def problems(self) -> Iterator[str]:
        """Find what no single key shows."""
        asked, rules = self.curator, self.compliance
        for key, value in _FIXED.items():
            if getattr(rules, key) != value:
                yield f"compliance.{key}: must be {value!r} in the game of the curator"
        if rules.epsilon is None or math.isinf(rules.epsilon):
            yield "compliance.epsilon: must be a number: without noise there is none to choose"
        if asked.openings > asked.requests:
            yield f"curator.openings: must be at most the {asked.requests} requests, not {asked.openings}"
        if (asked.defence == "none") != (asked.openings == 0) and not asked.sample:
            yield 'curator.openings: must be above 0 with a defence, and 0 for "none", which opens nothing'
        if bool(asked.sample) != (asked.requests == 0):
            yield "curator.requests: must be 0 where a sample is shown, and above 0 where none is"
        if asked.cheat == PICKED and not asked.sample:
            yield "curator.sample: must be above 0 for a sample to be picked"
        if asked.sample and (asked.cheat not in (HONEST, PICKED) or asked.defence != "none"):
            yield f'curator.cheat: of a sample must be "{HONEST}" or "{PICKED}", with defence "none"'
        if asked.sample and not 20 <= 2 * asked.sample <= self.data.people:
            yield f"curator.sample: must be from 10 to half of the {self.data.people:,} people, not {asked.sample:,}"
        if asked.strength * 4 > self.data.people and asked.cheat not in (HONEST, PICKED, "best"):
            yield f"curator.strength: must be at most a quarter of the {self.data.people:,} people"
