"""What the scenario files of the washing game may hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from developer.wash.play import METRIC
from developer.wash.shown import BLIND, STRATEGIES
from sim.scenarios.checks import mechanism_problems
from sim.scenarios.scenario import ComplianceSection, Scenario, Section, TableSection, one_of

DEPLOYED_OVER = 0.05
"""By how much more than tau a deployed model's gap has to be for its developer to have got away with something."""


class WashData(TableSection):
    """The table, and how many of its rows are audited, trained on, and public with their groups."""

    test_size: int = Field(default=1000, strict=True, ge=10, le=100_000)
    training: int = Field(default=5000, strict=True, ge=10, le=100_000)
    sample: int = Field(default=2000, strict=True, ge=10, le=100_000)


class WashSection(Section):
    """How the developer washes, and how it is checked.

    Attributes
    ----------
    strategy : what is shown in place of the deployed decisions, see `developer.wash.shown`.
    knows : from what the developer knows who is who: from features and the public sample, from the audit's answers too,
        or because it is given the groups.
    evades : whether it shows the rows that customers asked about as they saw them, where nothing binds it.
    tau : the largest absolute gap with which an audit is passed.
    checks : how many rows a customer asks the deployed model about; 0 for none.
    committed : whether the developer commits to what it shows before these rows are drawn.
    wrong : the probability that the customer reports a decision wrongly.
    alarm : the probability with which an honest developer may be accused.
    """

    strategy: Annotated[str, one_of(STRATEGIES)] = "flips"
    knows: Literal["features", "answers", "given"] = "features"
    evades: bool = Field(default=False, strict=True)
    tau: float = Field(default=0.02, strict=True, gt=0, lt=1)
    checks: int = Field(default=0, strict=True, ge=0)
    committed: bool = Field(default=False, strict=True)
    wrong: float = Field(default=0.0, strict=True, ge=0, lt=0.5)
    alarm: float = Field(default=1e-6, strict=True, gt=0, lt=1)


class WashScenario(Scenario):
    """A validated scenario of the washing game."""

    data: WashData
    compliance: ComplianceSection
    wash: WashSection = WashSection()

    @property
    def batches(self) -> int:
        """The audit, and before it a size query and metric queries where the developer asks who is who."""
        return 3 if self.wash.knows == "answers" else 1

    def steps(self) -> tuple[str, ...]:
        """List the calls by which parties take a trial on."""
        checks = ("SubmitSighting",) if self.wash.checks else ()
        return ("ServeTrial", "SubmitCommitment", *checks, "SubmitWash", "SubmitVerdict", "SubmitAuditReport")

    def problems(self) -> Iterator[str]:
        """Find what no single key shows."""
        asked = self.wash
        if self.data.source == "synthetic":
            yield "data.source: synthetic people have no features to learn from"
        if self.compliance.metric != METRIC:
            yield f"compliance.metric: the washing game audits {METRIC}, not {self.compliance.metric}"
        if self.compliance.mechanism == "pass-fail":
            yield "compliance.mechanism: pass-fail has a threshold of its own; the washing game needs a number"
        if asked.checks > self.data.test_size:
            yield f"wash.checks: {asked.checks} of {self.data.test_size} audited rows (data.test_size) cannot be drawn"
        if asked.evades and not asked.checks:
            yield "wash.evades: no customer asks; set wash.checks"
        if asked.wrong and not asked.checks:
            yield "wash.wrong: no customer reports anything; set wash.checks"
        if asked.strategy in BLIND and asked.knows != "features":
            yield f"wash.knows: strategy {asked.strategy} looks at nobody's group; leave it out"
        yield from mechanism_problems(self)
