"""What the scenario files of the release game may hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from fairwall.laws.local import CLEAN, LOCAL_LAWS
from fairwall.laws.metric import METRICS
from sim.scenarios.checks import mechanism_problems
from sim.scenarios.scenario import Epsilon, Scenario, Section, TableSection, one_of

AUDITED = ("sp", "di", "eo", "oad")
"""What the model is audited by; the paper's SPD, DI, EOD and OAD."""

DROPPED, CONSTANT = "dropped", "constant"
CONTROLS = (CLEAN, DROPPED, CONSTANT)
"""What stands in place of a protocol in the controls."""

_PROTOCOLS = dict.fromkeys((*LOCAL_LAWS, *CONTROLS))


class ReleaseData(TableSection):
    """The table. A known one has its roles already; left out, the sensitive columns are the table's own."""

    sensitive: tuple[str, ...] = ()
    test_share: float = Field(default=0.2, strict=True, gt=0, lt=1)


class ReleaseSection(Section):
    """How the sensitive columns are released."""

    protocol: Annotated[str, one_of(_PROTOCOLS)]
    split: Literal["uniform", "k-based", "weights"] = "uniform"
    weights: tuple[float, ...] = ()
    epsilon: Epsilon = float("inf")


class ReleaseDeveloper(Section):
    """How the developer's trees are trained; left out, as the paper does on this table."""

    depth: int | None = Field(default=None, strict=True, ge=1, le=1000)
    rate: float | None = Field(default=None, strict=True, gt=0, le=1)
    trees: int | None = Field(default=None, strict=True, ge=1, le=10_000)


class ReleaseScenario(Scenario):
    """A validated scenario of the release game."""

    data: ReleaseData
    release: ReleaseSection
    developer: ReleaseDeveloper = ReleaseDeveloper()

    @property
    def metrics(self) -> tuple[str, ...]:
        """What the model is audited by: all where answers are exact, else those that noise can be added to."""
        if self.compliance.mechanism == "exact":
            return AUDITED
        return tuple(name for name in AUDITED if METRICS[name].bounded)

    @property
    def batches(self) -> int:
        """Each metric is one batch."""
        return len(self.metrics)

    def steps(self) -> tuple[str, ...]:
        """List the calls by which parties take a trial on."""
        return ("ServeTrial", "SubmitBeliefs", "SubmitAuditReport")

    def problems(self) -> Iterator[str]:
        """Find what no single key shows."""
        release = self.release
        if release.protocol in CONTROLS and release.epsilon != float("inf"):
            yield f'release.epsilon: {release.protocol} sanitises nothing; leave it out, or "inf"'
        if release.protocol not in CONTROLS and release.epsilon == float("inf"):
            yield "release.epsilon: is missing, or infinite; a protocol needs a positive number"
        if (release.split == "weights") != bool(release.weights):
            yield 'release.weights: go with split = "weights", and that with them'
        yield from mechanism_problems(self)
