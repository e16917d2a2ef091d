"""What the scenario files of the game of groups may hold."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from compliance.answers.groups import EPSILON_MIN, GROUPS_MAX
from developer.groups.subsets import STRATEGIES
from sim.scenarios.scenario import NOT_ASKED, Epsilon, Scenario, Section, one_of

PEOPLE_MAX = 20_000
SYNTHETIC = "synthetic"


class GroupsSection(Section):
    """Who is in which group, and how the developer asks.

    Attributes
    ----------
    source : "synthetic", a shipped table, or the path of one.
    columns : of a table: the columns whose values, all together, are the groups.
    shares : of synthetic people: how likely each group is.
    people : how many are counted.
    epsilon : what all batches may cost together, for one person's change of group; infinite for exact counts.
    strategy : whom models accept, see `developer.groups.subsets`.
    batches, models : how many batches are asked, and how many models each has; at most, where they are searched.
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
        """List the calls by which parties take a trial on."""
        return ("ServeTrial", "SubmitGroups", "SubmitAuditReport")

    def problems(self) -> Iterator[str]:
        """Find what no single key shows."""
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
