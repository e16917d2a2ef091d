"""What the scenario files of the disclosure game may hold."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from fairwall.laws.disclosure import EPSILON_LEAST
from sim.scenarios.scenario import NOT_ASKED, Epsilon, Scenario, Section

PEOPLE_MAX = 100_000


class DisclosureSection(Section):
    """What is asked about Alice, and what is known and released.

    Attributes
    ----------
    mode : what is asked: which record is hers, what she answered, the same where people like her answer alike, or
        whether she takes part.
    alice : whether she takes part; drawn where that is the secret, and only there.
    knows : whether the developer knows only who takes part and by what law people answer, or everybody else's answer
        too.
    people : how many others take part.
    cells : how many combinations of values of the columns that are no secret, each as likely as another.
    epsilon : of the release; infinite for counts without noise and, of identity, for the records.
    rate : of the inferential mode: how often people answer yes where it makes no difference to be of Alice's cell; in
        that cell as often, or as often no.
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
        """List the calls by which parties take a trial on."""
        return ("ServeTrial", "SubmitPosterior", "SubmitAuditReport")

    def problems(self) -> Iterator[str]:
        """Find what no single key shows."""
        asked = self.disclosure
        if self.compliance != NOT_ASKED:
            yield "compliance: no metric is asked for in the disclosure game; leave the table out"
        if asked.epsilon < EPSILON_LEAST:
            yield f'disclosure.epsilon: must be at least {EPSILON_LEAST:,g}, or "inf", not {asked.epsilon:,g}'
        if (asked.mode == "presence") != (asked.alice == "drawn"):
            yield 'disclosure.alice: is "drawn" in mode presence, where it is the secret, and "in" or "out" in others'
        if asked.mode == "inferential" and asked.knows == "others":
            yield 'disclosure.knows: must be "law" in mode inferential, which is about what others\' answers teach'
