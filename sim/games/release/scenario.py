"""Scenario files of the release game."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import localcontext
from typing import Annotated, Literal

from pydantic import Field

from developer.release.mixture import ANSWERED_BY
from fairwall.laws.local import CLEAN, LOCAL_LAWS
from fairwall.laws.metrics.metric import METRICS
from fairwall.laws.privacy.amounts import EXACT, at_most, written
from sim.scenarios.scenario import (
    EPSILON_MIN,
    QUERIES_MAX,
    Epsilon,
    Scenario,
    ScenarioKeys,
    ScenarioTable,
    mechanism_problems,
    one_of,
)

AUDITED = ("sp", "di", "eo", "oad")
"""The metrics that the model is audited by: the paper's SPD, DI, EOD and OAD."""

DROPPED, CONSTANT = "dropped", "constant"
CONTROLS = (CLEAN, DROPPED, CONSTANT)
"""The controls, named in place of a protocol."""

UNIFORM_AT_K_BASED = "uniform-at-k-based"
"""The control for k-based: the uniform split, at the epsilon that gives the protected column what k-based gives it."""

QUERIES_SHARE = "release.queries_share"
"""The key swept by a run that divides one epsilon between a release and queries."""

_PROTOCOLS = dict.fromkeys((*LOCAL_LAWS, *CONTROLS))


class ReleaseData(ScenarioTable):
    """The table. A known one has its roles; the default sensitive columns are the table's own.

    Attributes
    ----------
    sensitive_drawn : fewest and most sensitive columns, the protected one included, where each trial draws its own.
    candidates : columns to draw from, besides the protected one; by default the table's own sensitive columns.
    """

    sensitive: tuple[str, ...] = ()
    sensitive_drawn: tuple[Annotated[int, Field(strict=True)], ...] = ()
    candidates: tuple[str, ...] = ()
    test_share: float = Field(default=0.2, strict=True, gt=0, lt=1)

    def problems(self) -> Iterator[str]:
        """Yield the problems of the choice of sensitive columns that no table could solve."""
        for key, columns in (("sensitive", self.sensitive), ("candidates", self.candidates)):
            twice = [column for place, column in enumerate(columns) if column in columns[:place]]
            if twice:
                yield f"data.{key}: names {twice[0]!r} twice"
        drawn = self.sensitive_drawn
        if drawn and (len(drawn) != 2 or not 2 <= drawn[0] <= drawn[1]):
            yield f"data.sensitive_drawn: must be the least and the most columns, both at least 2, not {list(drawn)}"
        if drawn and self.sensitive:
            yield "data.sensitive: is named where nothing is drawn; leave it or data.sensitive_drawn out"
        if self.candidates and not drawn:
            yield "data.candidates: go with data.sensitive_drawn, which draws from them"


class ScenarioRelease(ScenarioKeys):
    """Protocol of the release of the sensitive columns, and the developer's queries about the same people.

    The developer makes all queries, or as many of them as `developer.release.searched` finds most informative.
    """

    protocol: Annotated[str, one_of(_PROTOCOLS)]
    split: Literal["uniform", "k-based", "uniform-at-k-based", "weights"] = "uniform"
    weights: tuple[float, ...] = ()
    epsilon: Epsilon = float("inf")
    queries: int = Field(default=0, strict=True, ge=0, le=QUERIES_MAX)
    queries_share: float = Field(default=0.0, strict=True, ge=0, le=1)
    asked: Literal["all", "searched"] = "all"

    @property
    def queried_epsilon(self) -> float:
        """The part of epsilon for queries about the people trained on."""
        with localcontext(EXACT):
            return at_most(written(self.queries_share) * written(self.epsilon)) if self.queries_share else 0.0

    @property
    def released_epsilon(self) -> float:
        """The part of epsilon for the release: the rest, rounded so that both together do not exceed epsilon."""
        with localcontext(EXACT):
            return at_most(written(self.epsilon) - written(self.queried_epsilon))


class ReleaseDeveloper(ScenarioKeys):
    """Settings of the developer's trees; by default the paper's for this table."""

    depth: int | None = Field(default=None, strict=True, ge=1, le=1000)
    rate: float | None = Field(default=None, strict=True, gt=0, le=1)
    trees: int | None = Field(default=None, strict=True, ge=1, le=10_000)


class ReleaseScenario(Scenario):
    """A validated scenario of the release game."""

    data: ReleaseData
    release: ScenarioRelease
    developer: ReleaseDeveloper = ReleaseDeveloper()

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics of the audit: all where answers are exact, otherwise those that noise can be added to."""
        if self.compliance.mechanism == "exact":
            return AUDITED
        return tuple(name for name in AUDITED if METRICS[name].bounded)

    @property
    def batches(self) -> int:
        """Number of batches: one per metric."""
        return len(self.metrics)

    def steps(self) -> tuple[str, ...]:
        """Return the calls by which the parties advance a trial, in order."""
        return ("ServeTrial", "SubmitBeliefs", "SubmitAuditReport")

    def problems(self) -> Iterator[str]:
        """Yield the problems that involve several keys."""
        release = self.release
        yield from self.data.problems()
        if release.split == "weights" and self.data.sensitive_drawn:
            yield "release.split: weights fit no columns that each trial draws; choose uniform or k-based"
        if release.protocol in CONTROLS and release.epsilon != float("inf"):
            yield f'release.epsilon: {release.protocol} sanitises nothing; leave it out, or "inf"'
        if release.protocol not in CONTROLS and release.epsilon == float("inf"):
            yield "release.epsilon: is missing, or infinite; a protocol needs a positive number"
        if (release.split == "weights") != bool(release.weights):
            yield 'release.weights: go with split = "weights", and that with them'
        yield from mechanism_problems(self)
        yield from self._query_problems()

    def _query_problems(self) -> Iterator[str]:
        release, mechanism = self.release, self.compliance.mechanism
        if bool(release.queries) != bool(release.queries_share):
            yield "release.queries: go with a release.queries_share above 0, and that with them"
        if release.asked != "all" and not release.queries:
            yield "release.asked: chooses how many of release.queries are asked; set these"
        if not release.queries:
            return
        if release.protocol in CONTROLS:
            yield f"release.queries: take a share of epsilon, of which {release.protocol} has none; leave them out"
        elif release.split == UNIFORM_AT_K_BASED:
            yield f"release.queries: share out one epsilon, and split {UNIFORM_AT_K_BASED} spends another one"
        elif 0 < release.queried_epsilon < EPSILON_MIN:
            yield f"release.queries_share: leaves less than {EPSILON_MIN:,g} of epsilon to the queries"
        if mechanism not in ANSWERED_BY:
            yield (
                f"release.queries: must be answered by one of {', '.join(ANSWERED_BY)} as compliance.mechanism, "
                f"not {mechanism}"
            )
