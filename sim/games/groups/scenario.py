"""Scenario files of the game of groups."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from compliance.answers.groups import EPSILON_MIN, GROUPS_MAX
from developer.groups.subsets import STRATEGIES
from sim.scenarios.scenario import NOT_ASKED, Epsilon, Scenario, ScenarioKeys, one_of

PEOPLE_MAX = 20_000
SYNTHETIC = "synthetic"


class GroupsSection(ScenarioKeys):
    """The keys of `[groups]`: the people's groups, and the developer's attack.

    Attributes
    ----------
    source : "synthetic", a shipped table, or a table's path.
    columns : columns of a table; groups are the combinations of their values.
    shares : probability of each group of synthetic people.
    people : number of people counted.
    epsilon : most that all batches may cost together, for one person's change of group; infinite for exact counts.
    strategy : choice of the people whom the models accept, see `developer.groups.subsets`.
    batches, models : number of batches, and of models in each; upper limits where they are searched.
    """

    source: str = SYNTHETIC
    columns: tuple[str, ...] = ()
    shares: tuple[Annotated[float, Field(gt=0, lt=1)], ...] = ()
    people: int = Field(default=1000, strict=True, ge=10, le=PEOPLE_MAX)
    epsilon: Epsilon
    strategy: Annotated[str, one_of(STRATEGIES)] = "blocks"
    batches: int = Field(default=1, strict=True, ge=1, le=1000)
    models: int = Field(default=4, strict=True, ge=1, le=1000)


class GroupsScenario(Scenario):
    """A validated scenario of the game of groups."""

    groups: GroupsSection

    @property
    def epsilon(self) -> float:
        """The privacy budget of a trial, in epsilon."""
        return self.groups.epsilon

    def steps(self) -> tuple[str, ...]:
        """Return the calls by which the parties advance a trial, in order."""
        return ("ServeTrial", "SubmitGroups", "SubmitAuditReport")

    def problems(self) -> Iterator[str]:
        """Yield the problems that involve several keys."""
        asked = self.groups
        if self.compliance != NOT_ASKED:
            yield "compliance: no metric is asked for in the game of groups; leave the table out"
        if asked.source == SYNTHETIC:
            if asked.columns:
                yield "groups.columns: only a table has them; of synthetic people give groups.shares"
            if not 2 <= len(asked.shares) <= GROUPS_MAX or not math.isclose(math.fsum(asked.shares), 1):
                yield f"groups.shares: must be of 2 to {GROUPS_MAX} groups, and sum up to 1"
        elif asked.shares:
            yield "groups.shares: only of synthetic people; those of a table's groups follow from it"
        elif not asked.columns:
            yield "groups.columns: is missing; groups are made of a table's columns"
        least = EPSILON_MIN * asked.batches * asked.models
        if asked.epsilon < least:
            yield f'groups.epsilon: must be at least {least:g} for so many models, or "inf", not {asked.epsilon:,g}'
        if asked.strategy == "blocks" and 2**asked.models > asked.people:
            yield f"groups.models: {asked.models} make more blocks than there are people"
