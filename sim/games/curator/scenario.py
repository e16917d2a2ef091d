"""Scenario files of the curator game."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from compliance.games.curator import CHEATS, HONEST, PICKED
from developer.curator import METRIC
from fairwall.laws.privacy.amounts import part_of
from sim.scenarios.scenario import ComplianceSection, Scenario, ScenarioKeys, ScenarioTable, one_of

PEOPLE_MAX = 20_000
_FIXED = ComplianceSection(mechanism="laplace", metric=METRIC).model_dump(exclude={"epsilon"})


class CuratorData(ScenarioTable):
    """The table, and the number of its people that compliance holds."""

    people: int = Field(default=1000, strict=True, ge=10, le=PEOPLE_MAX)


class CuratorSection(ScenarioKeys):
    """The keys of `[curator]`: compliance's cheat, and the defence against it.

    Attributes
    ----------
    cheat : a cheat of `compliance.games.curator`; "none" is honest.
    strength : number of noises or samples drawn, of rows touched, or factor by which the noise is too small.
    share : probability that a request is cheated at.
    defence : "statistics" tests the noise's distribution; "commitment" recomputes answers.
    requests : number of models, each in a request of its own for an equal part of the budget.
    openings : number of requests that the regulator opens.
    minimum_group : smallest size of a group, on which the noise's scale depends.
    sample : number of rows that compliance shows in place of answers, as a sample of all; 0 for none.
    passes : largest gap in labels with which the sample passes.
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
    """A validated scenario of the curator game."""

    data: CuratorData
    curator: CuratorSection

    @property
    def committed(self) -> bool:
        """Whether compliance commits before it admits the developer."""
        return self.curator.defence == "commitment"

    @property
    def share_of_epsilon(self) -> float:
        """Epsilon of one request."""
        return part_of(self.epsilon, max(1, self.curator.requests))

    def steps(self) -> tuple[str, ...]:
        """Return the calls by which the parties advance a trial, in order."""
        first = ("ReleaseCommitment",) if self.committed else ()
        return (*first, "ServeTrial", "SubmitAnswers", "SubmitOpening", "SubmitAuditReport")

    def problems(self) -> Iterator[str]:
        """Yield the problems that involve several keys."""
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
