"""Scenario files of the reveal game, with the checks of a playable scenario."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from developer.reveal.strategies import STRATEGIES, Strategy, takes
from developer.service import ROWS_MAX
from fairwall.errors import did_you_mean, nearest
from fairwall.laws.metrics.metric import METRICS
from sim.scenarios.scenario import (
    QUERIES_MAX,
    ComplianceSection,
    PaperFigure,
    Scenario,
    ScenarioKeys,
    ScenarioTable,
    mechanism_problems,
    one_of,
)

PEOPLE_MAX = 10_000_000
"""Most synthetic people."""

Queries = Annotated[int, Field(strict=True, ge=1)] | Literal["n", "n-1", "needed"]


class RevealData(ScenarioTable):
    """The table, and the test set that is drawn from it."""

    test_size: int | None = Field(default=None, strict=True, ge=3)
    n0: int | None = Field(default=None, strict=True, ge=1)
    train_share: float = Field(default=0.5, strict=True, ge=0, lt=1)
    n: int | None = Field(default=None, strict=True, ge=3, le=PEOPLE_MAX)
    scores: str | None = None
    hidden: bool = Field(default=False, strict=True)


class RevealDeveloper(ScenarioKeys):
    """The developer's strategy, and its public knowledge besides features and labels."""

    strategy: Annotated[str, one_of(STRATEGIES)] = "best"
    decoder: str | None = None
    queries: Queries | None = None
    perturbation: float | None = Field(default=None, strict=True, gt=0, le=1)
    knows: tuple[Literal["precision", "n0"], ...] = ("precision",)
    public_sample: int = Field(default=0, strict=True, ge=0, le=100_000)


class RevealAdversary(ScenarioKeys):
    """The adversary's loss test of the released base model: whether it runs, and on how many public rows."""

    attack: tuple[str, ...] = Field(default=(), max_length=10)
    probes: int = Field(default=2000, strict=True, ge=2, le=100_000)


class RevealFigure(PaperFigure):
    """A paper's printed figures of the reveal game: leakage in percent, an error, a number of people."""

    leakage: float | None = None
    query_error_mean: float | None = None
    recovered: float | None = None


class RevealScenario(Scenario):
    """A validated scenario of the reveal game."""

    data: RevealData
    compliance: ComplianceSection
    developer: RevealDeveloper = RevealDeveloper()
    adversary: RevealAdversary = RevealAdversary()
    paper: tuple[RevealFigure, ...] = ()

    # A strategy brings its decoder and its perturbation; a swept perturbation is the scenario's subject, and is kept.
    chosen_with: ClassVar[Mapping[str, Sequence[tuple[str, bool]]]] = {
        "developer.strategy": (("developer.decoder", True), ("developer.perturbation", False))
    }

    @property
    def people(self) -> int:
        """Size of the test set."""
        size = self.data.n if self.data.source == "synthetic" else self.data.test_size
        assert size is not None, "checked when the scenario was read"
        return size

    @property
    def batches(self) -> int:
        """Number of batches: size query, metric queries and, for a hidden test set, one in which it is seen."""
        return 3 if self.data.hidden else 2

    @property
    def decoder(self) -> str:
        """The decoder's name; empty where the strategy reads the answers itself."""
        asked = self.developer.decoder
        own = next(iter(STRATEGIES[self.developer.strategy].decoders), "")
        return own if asked in (None, "own") else asked

    @property
    def perturbation(self) -> float:
        """Largest distance of the queried scores from h0's, in [0, 1]."""
        asked = self.developer.perturbation
        return STRATEGIES[self.developer.strategy].perturbation if asked is None else asked

    @property
    def queries(self) -> int | Literal["n", "n-1", "needed"]:
        """Number of metric queries: an integer, the people of the stratum ("n", "n-1"), or "needed"."""
        if self.developer.queries is not None:
            return self.developer.queries
        strategy = STRATEGIES[self.developer.strategy]
        if strategy.adaptive:
            return "needed"
        counts = strategy.counts(self.people)
        return counts[0] if len(counts) == 1 and counts[0] != self.people else "n"

    def steps(self) -> tuple[str, ...]:
        """Return the calls by which the parties advance a trial, in order."""
        attacks = ("ReleaseModel", "SubmitLossTest") if self.adversary.attack else ()
        return ("ServeTrial", "SubmitReveal", *attacks, "SubmitAuditReport")

    def problems(self) -> Iterator[str]:
        """Yield the problems that involve several keys."""
        yield from _problems(self)


def _problems(scenario: RevealScenario) -> Iterator[str]:
    data, compliance, developer = scenario.data, scenario.compliance, scenario.developer
    if scenario.adversary.attack not in ((), ("loss-test",)):
        yield f'adversary.attack: must be ["loss-test"] or left out, not {list(scenario.adversary.attack)!r}'
    if data.source == "synthetic":
        for key in ("n", "n0", "scores"):
            if getattr(data, key) is None:
                yield f"data.{key}: is missing; synthetic data need n, n0 and scores"
        if data.test_size not in (None, data.n):
            yield f"data.test_size: all {data.n} synthetic people are the test set; leave it out"
    else:
        for key in ("n", "scores"):
            if getattr(data, key) is not None:
                yield f"data.{key}: only synthetic data have it"
        if data.test_size is None:
            yield "data.test_size: is missing"
    if data.n0 is not None and scenario.people <= data.n0:
        yield f"data.n0: must leave somebody in the other group: at most {scenario.people - 1}, not {data.n0}"
    if data.hidden:
        yield from _hidden_problems(scenario)
    yield from mechanism_problems(scenario)
    strategy = STRATEGIES[developer.strategy]
    if compliance.metric not in strategy.metrics:
        readable = ", ".join(metric for metric in METRICS if metric in strategy.metrics)
        yield f"developer.strategy: {strategy.name} reads {readable}, not {compliance.metric}"
    if strategy.mechanism is not None and compliance.mechanism != strategy.mechanism:
        yield (
            f"developer.strategy: {strategy.name} reads answers of mechanism {strategy.mechanism}, "
            f"not of {compliance.mechanism}"
        )
    if METRICS[compliance.metric].joined == "max" and scenario.perturbation < 1:
        yield (
            "developer.perturbation: near the base model one stratum's gap hides smaller ones of the other from "
            f"{compliance.metric}; 1, or leave it out"
        )
    special = METRICS[compliance.metric].binary or compliance.mechanism == "pass-fail"
    if METRICS[compliance.metric].binary and not math.isinf(scenario.epsilon):
        yield (
            f"compliance.metric: strategy {strategy.name} reads {compliance.metric} from exact answers only, "
            'so epsilon must be "inf"'
        )
    if (strategy.free or (strategy.name == "best" and special)) and scenario.perturbation < 1:
        yield f"developer.perturbation: strategy {strategy.name} asks about free rows: 1, or leave it out"
    if strategy.exact and not math.isinf(scenario.epsilon):
        yield f'developer.strategy: {strategy.name} reads exact answers only, so epsilon must be "inf"'
    if developer.public_sample % 2:
        yield f"developer.public_sample: must be even, half of each group, not {developer.public_sample}"
    if developer.public_sample and data.source == "synthetic":
        yield "developer.public_sample: synthetic people have no features to predict a group from; leave it out"
    if developer.decoder not in (None, "own") and not takes(strategy.name, developer.decoder):
        allowed = f"works with {' or '.join(strategy.decoders)}" if strategy.decoders else "reads the answers itself"
        hint = did_you_mean(nearest(developer.decoder, strategy.decoders))
        yield f"developer.decoder: strategy {strategy.name} {allowed}, not with {developer.decoder!r}{hint}"
    yield from _query_problems(scenario, strategy)


def _hidden_problems(scenario: RevealScenario) -> Iterator[str]:
    if METRICS[scenario.compliance.metric].labelled:
        allowed = ", ".join(name for name, metric in METRICS.items() if not metric.labelled)
        yield f"data.hidden: only metrics without labels ({allowed}), not {scenario.compliance.metric}"
    if scenario.data.source != "synthetic" and not scenario.data.train_share:
        yield "data.hidden: the base model cannot be trained on the test set: data.train_share must be above 0"
    if scenario.people > ROWS_MAX:
        yield f"data.hidden: a model is asked about at most {ROWS_MAX} people, not {scenario.people}"


def _query_problems(scenario: RevealScenario, strategy: Strategy) -> Iterator[str]:
    people = scenario.people
    counts = strategy.counts(people)
    by_people = len(counts) <= 2 and people in counts
    if by_people:
        wanted = 'asks "n" or "n-1" queries' if people - 1 in counts else 'asks "n" queries'
    elif len(counts) == 1:
        wanted = f"asks {counts[0]}"
    else:
        wanted = "asks any number of at least 1"
    asked = scenario.queries
    most = max(QUERIES_MAX, people)
    metric = METRICS[scenario.compliance.metric]
    strata = len(metric.strata)
    if asked == "needed" and strategy.adaptive:
        if not math.isinf(scenario.epsilon):
            yield "developer.queries: is missing; epsilon is shared out among so many"
    elif scenario.developer.queries is None and len(counts) > 2:
        yield "developer.queries: is missing"
    elif isinstance(asked, int) and asked > most:
        yield f"developer.queries: must be at most {most}, not {asked}"
    elif isinstance(asked, int) and asked < strata:
        yield f"developer.queries: must be at least {strata}, for the strata of {metric.name}, not {asked}"
    elif isinstance(asked, int):
        # One query per person means one per person of the stratum, whose size varies with the test set.
        varies = by_people and metric.label is not None
        if asked not in counts or varies:
            yield f"developer.queries: strategy {strategy.name} {wanted}, not {asked}"
    elif not by_people:
        yield f'developer.queries: strategy {strategy.name} {wanted}, not "{asked}"'
    elif asked == "n-1" and people - 1 not in counts:
        yield f'developer.queries: strategy {strategy.name} {wanted}, not "n-1"'
