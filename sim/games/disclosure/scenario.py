"""Scenario files of the disclosure game."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from fairwall.laws.studies.disclosure import EPSILON_LEAST
from sim.scenarios.scenario import NOT_ASKED, Epsilon, Scenario, ScenarioKeys

PEOPLE_MAX = 100_000


class DisclosureSection(ScenarioKeys):
    """The keys of `[disclosure]`: the secret, the developer's knowledge and the release.

    Attributes
    ----------
    mode : the secret: "identity", which record is Alice's; "attribute", her answer; "inferential", her answer where
        people like her answer alike; "presence", whether she takes part.
    alice : whether she takes part; "drawn" in mode presence, and only there.
    knows : "law": the developer knows who takes part and the distribution of answers; "others": also everybody else's
        answer.
    people : number of other people.
    cells : number of combinations of values of the columns that are not secret; all are equally likely.
    epsilon : of the release; infinite for counts without noise and, in mode identity, for the records.
    rate : in mode inferential, the probability of yes outside Alice's cell; inside, that of yes or of no, by a coin.
    """

    mode: Literal["identity", "attribute", "inferential", "presence"]
    alice: Literal["in", "out", "drawn"] = "in"
    knows: Literal["law", "others"] = "law"
    people: int = Field(default=1000, strict=True, ge=1, le=PEOPLE_MAX)
    cells: int = Field(default=2, strict=True, ge=1, le=PEOPLE_MAX)
    epsilon: Epsilon
    rate: float = Field(default=0.1, strict=True, gt=0, lt=0.5)

    @property
    def records(self) -> bool:
        """Whether the records are released as they are."""
        return self.mode == "identity" and math.isinf(self.epsilon)


class DisclosureScenario(Scenario):
    """A validated scenario of the disclosure game."""

    disclosure: DisclosureSection

    @property
    def epsilon(self) -> float:
        """The privacy budget of a trial, in epsilon."""
        return self.disclosure.epsilon

    def steps(self) -> tuple[str, ...]:
        """Return the calls by which the parties advance a trial, in order."""
        return ("ServeTrial", "SubmitPosterior", "SubmitAuditReport")

    def problems(self) -> Iterator[str]:
        """Yield the problems that involve several keys."""
        asked = self.disclosure
        if self.compliance != NOT_ASKED:
            yield "compliance: no metric is asked for in the disclosure game; leave the table out"
        if asked.epsilon < EPSILON_LEAST:
            yield f'disclosure.epsilon: must be at least {EPSILON_LEAST:,g}, or "inf", not {asked.epsilon:,g}'
        if (asked.mode == "presence") != (asked.alice == "drawn"):
            yield 'disclosure.alice: is "drawn" in mode presence, where it is the secret, and "in" or "out" in others'
        if asked.mode == "inferential" and asked.knows == "others":
            yield 'disclosure.knows: must be "law" in mode inferential, which is about what others\' answers teach'
