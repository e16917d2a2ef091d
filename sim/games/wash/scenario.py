"""Scenario files of the washing game."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from developer.wash.play import METRIC
from developer.wash.shown_decisions import BLIND, STRATEGIES
from sim.scenarios.scenario import ComplianceSection, Scenario, ScenarioKeys, ScenarioTable, mechanism_problems, one_of

DEPLOYED_OVER = 0.05
"""Smallest excess of a deployed model's gap over tau that counts as cheating."""


class WashData(ScenarioTable):
    """The table, and the numbers of rows that are audited, trained on, and public with their groups."""

    test_size: int = Field(default=1000, strict=True, ge=10, le=100_000)
    training: int = Field(default=5000, strict=True, ge=10, le=100_000)
    sample: int = Field(default=2000, strict=True, ge=10, le=100_000)


class WashSection(ScenarioKeys):
    """The keys of `[wash]`: the developer's way of washing, and the check of it.

    Attributes
    ----------
    strategy : choice of the decisions shown in place of the deployed ones, see `developer.wash.shown_decisions`.
    knows : source of the developer's knowledge of groups: features and the public sample, the audit's answers too, or
        the groups themselves.
    evades : whether it shows checked rows as deployed, where no commitment binds it.
    tau : largest absolute gap that passes the audit.
    checks : number of rows that a customer checks on the deployed model; 0 for none.
    committed : whether the developer commits to the shown decisions before the checked rows are drawn.
    wrong : probability that the customer reports a decision wrongly.
    alarm : largest probability of accusing an honest developer.
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
        """Number of batches: the audit, after a size query and metric queries if the developer learns from answers."""
        return 3 if self.wash.knows == "answers" else 1

    def steps(self) -> tuple[str, ...]:
        """Return the calls by which the parties advance a trial, in order."""
        checks = ("SubmitSighting",) if self.wash.checks else ()
        return ("ServeTrial", "SubmitCommitment", *checks, "SubmitWash", "SubmitVerdict", "SubmitAuditReport")

    def problems(self) -> Iterator[str]:
        """Yield the problems that involve several keys."""
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
