"""Scenario files of the overfit game."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from developer.overfit import ATTACKS
from sim.scenarios.scenario import (
    QUERIES_MAX,
    ComplianceSection,
    Scenario,
    ScenarioKeys,
    ScenarioTable,
    mechanism_problems,
    one_of,
)

ROWS = {
    "open": "the developer sees their X",
    "hidden": "the developer sees its model's decisions on them alone",
    "fresh": "the developer sees their X, and each round and the verdict are of rows that are drawn anew",
    "committed": "the developer hands sealed models over before there are rows, and sees none",
}
"""The kinds of audited rows, with the developer's view of each."""


class OverfitData(ScenarioTable):
    """The table, the number of its rows that are audited, and the share that the model is trained on."""

    test_size: int = Field(strict=True, ge=20, le=QUERIES_MAX)
    train_share: float = Field(default=0.5, strict=True, gt=0, lt=1)


class OverfitSection(ScenarioKeys):
    """The keys of `[overfit]`: the audited rows, and the developer's attack.

    Attributes
    ----------
    rows : "open", "hidden", "fresh" or "committed", see `ROWS`.
    attack : the developer's choice of patches, see `developer.overfit`.
    flips : most decisions that it may patch.
    rounds : number of rounds of requests before the verdict; of fresh rows, each round is about other rows.
    public_sample : number of people of the training part, with known A, that the public predictor is trained on.
    population : most rows that the referee holds back to measure the population's gap.
    models : of committed rows, the number of sealed models that are audited.
    """

    rows: Annotated[str, one_of(ROWS)] = "open"
    attack: Annotated[str, one_of(ATTACKS)] = "both"
    flips: int = Field(default=20, strict=True, ge=1)
    rounds: int = Field(default=1, strict=True, ge=1, le=100)
    public_sample: int = Field(default=4000, strict=True, ge=20, le=100_000)
    population: int = Field(default=10_000, strict=True, ge=20, le=100_000)
    models: int = Field(default=400, strict=True, ge=1, le=QUERIES_MAX)


class OverfitScenario(Scenario):
    """A validated scenario of the overfit game."""

    data: OverfitData
    compliance: ComplianceSection
    overfit: OverfitSection = OverfitSection()

    @property
    def committed(self) -> bool:
        """Whether the developer commits itself to sealed models."""
        return self.overfit.rows == "committed"

    @property
    def batches(self) -> int:
        """Number of batches: a size query and a batch of models per round, or one batch of sealed models."""
        return 1 if self.committed else 2 * self.overfit.rounds

    def steps(self) -> tuple[str, ...]:
        """Return the calls by which the parties advance a trial, in order."""
        sealed = ("SubmitSealed",) if self.committed else ()
        return (*sealed, "ServeTrial", "SubmitPatches", "SubmitAuditReport")

    def problems(self) -> Iterator[str]:
        """Yield the problems that involve several keys."""
        asked = self.overfit
        if asked.flips > self.data.test_size:
            yield f"overfit.flips: at most the {self.data.test_size} rows that are audited, not {asked.flips}"
        if self.committed != (asked.attack == "majority"):
            yield f'overfit.attack: "majority" is for committed rows, and nothing else is; not {asked.attack!r}'
        if self.committed and asked.rounds > 1:
            yield f"overfit.rounds: who commits itself to all models at once has 1 round, not {asked.rounds}"
        if asked.rows == "hidden" and asked.attack != "answers":
            yield f'overfit.attack: of hidden rows X is not seen: "answers", not {asked.attack!r}'
        if self.compliance.metric != "sp":
            yield f'compliance.metric: the game is about "sp", not {self.compliance.metric!r}'
        yield from mechanism_problems(self)
