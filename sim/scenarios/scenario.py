"""A scenario: what the sections of its file may hold, and what follows from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, model_validator

from compliance.bounding import Bounding
from developer.reveal import STRATEGIES
from fairwall.laws.precision import DECIMALS_MAX

PEOPLE_MAX = 10_000_000
"""The most synthetic people there can be."""

EPSILON_MIN = 1e-6
"""Each query of a trial gets a share of epsilon, and compliance answers none below 1e-12."""

QUERIES_MAX = 10_000
"""The most queries in a trial, unless there are more people than that."""

_OFTEN = "scenario.trials"
"""Grids may set it, but it says nothing about a cell."""


def _epsilon(value: object) -> float:
    if value == "inf":
        return math.inf
    try:
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            raise ValueError
        epsilon = float(value)
    except (ValueError, OverflowError):
        raise ValueError('must be a positive number or "inf"') from None
    if epsilon < EPSILON_MIN:
        raise ValueError(f'must be at least {EPSILON_MIN:g}, or "inf"')
    return epsilon


def plain(value: float) -> float | str:
    """Write a number as files and results do: an infinite one is "inf"."""
    return "inf" if math.isinf(value) else value


Epsilon = Annotated[float, Field(allow_inf_nan=True), BeforeValidator(_epsilon), PlainSerializer(plain)]
Queries = Annotated[int, Field(strict=True, ge=1)] | Literal["n", "n-1", "needed"]
Metric = Literal[
    "sp", "abs_sp", "eo", "abs_eo", "fpr", "abs_fpr", "eodds_max", "eodds_sum", "ppv", "oad", "abs_oad", "di"
]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class ScenarioSection(_Section):
    """What is played, and how often."""

    name: str = Field(min_length=1, max_length=80)
    game: Literal["reveal", "inference"]
    about: str = ""
    trials: int = Field(default=1, strict=True, ge=1)
    seed: int = Field(default=0, strict=True, ge=0)
    require: tuple[str, ...] = ()
    record: Literal["full", "digest", "none"] = "full"


class DataSection(_Section):
    """The table, the columns' roles, and the test set that is drawn from it."""

    source: str = Field(min_length=1)
    protected: str | None = None
    advantaged: str | None = None
    disadvantaged: str | None = None
    label: str | None = None
    positive: str | None = None
    drop: tuple[str, ...] = ()
    test_size: int | None = Field(default=None, strict=True, ge=3)
    n0: int | None = Field(default=None, strict=True, ge=1)
    train_share: float = Field(default=0.5, strict=True, ge=0, lt=1)
    n: int | None = Field(default=None, strict=True, ge=3, le=PEOPLE_MAX)
    scores: str | None = None
    hidden: bool = Field(default=False, strict=True)
    also_protected: dict[str, str] = {}


class ComplianceSection(_Section):
    """The policy: what is answered, how, and at what privacy loss."""

    metric: Metric = "sp"
    mechanism: str
    epsilon: Epsilon | None = None
    delta: float = Field(default=0.0, strict=True, ge=0, lt=1)
    noise: Literal["seeded", "system"] = "seeded"
    bounding: Bounding = "none"
    precision: Literal["float64", "float32"] | Annotated[int, Field(strict=True, ge=0, le=DECIMALS_MAX)] = "float64"
    differencing: int = Field(default=0, strict=True, ge=0)


NOT_ASKED = ComplianceSection(mechanism="exact")


class DeveloperSection(_Section):
    """The developer's strategy, and what is public to it besides features and labels."""

    strategy: str = "best"
    decoder: str | None = None
    queries: Queries | None = None
    perturbation: float | None = Field(default=None, strict=True, gt=0, le=1)
    knows: tuple[Literal["precision", "n0"], ...] = ("precision",)
    public_sample: int = Field(default=0, strict=True, ge=0, le=100_000)
    defence: str = "none"
    strength: float = Field(default=1.0, strict=True, ge=0, alias="lambda")
    lambdas: tuple[Annotated[float, Field(ge=0)], ...] = Field(default=(), max_length=20)
    rehearsal: float = Field(default=0.2, strict=True, ge=0, le=1)
    purity: float = Field(default=1.0, strict=True, ge=0.5, le=1)
    victims: int = Field(default=20, strict=True, ge=2, le=100)
    rows: int = Field(default=0, strict=True, ge=0)
    other_rows: int = Field(default=0, strict=True, ge=0)
    steps: int = Field(default=0, strict=True, ge=0, le=100_000)
    tune_steps: int = Field(default=0, strict=True, ge=0, le=100_000)
    training_epsilon: float = Field(default=3.0, strict=True, gt=0)
    training_delta: float = Field(default=1e-5, strict=True, gt=0, lt=1)
    adaptive_clipping: bool = Field(default=False, strict=True)


class AdversarySection(_Section):
    """The outside adversary's part."""

    attack: tuple[str, ...] = Field(default=(), max_length=10)
    probes: int = Field(default=2000, strict=True, ge=2, le=100_000)
    shadows: int = Field(default=100, strict=True, ge=0, le=2000)
    answers: Literal["scores", "labels"] = "scores"
    adapts: bool = Field(default=True, strict=True)


FaultKind = Literal[
    "delay", "throttle", "blackhole", "drop", "duplicate", "truncate", "reorder", "half-close", "kill", "pause"
]
LinkName = Literal[
    "compliance-referee",
    "developer-referee",
    "adversary-referee",
    "developer-compliance",
    "compliance-developer",
    "adversary-developer",
]
StepName = Literal[
    "ServeTrial",
    "SubmitReveal",
    "ReleaseModel",
    "SubmitLossTest",
    "SubmitModels",
    "SubmitGuesses",
    "SubmitAuditReport",
]
OF_PARTIES = ("kill", "pause")
"""The faults that befall a party; the others befall a link."""


class Fault(_Section):
    """One fault, and when it happens: at a step, or once so many bytes of a trial have passed on a link.

    Parameters
    ----------
    trial : int
        The trial's number within the run, from 1.
    kind : str
        Of a link: "delay", "throttle", "blackhole", "drop", "duplicate", "truncate", "reorder" or "half-close"; of a
        party: "kill" or "pause".
    party : str, optional
        Whom it befalls.
    link : str, optional
        What it befalls, or where the bytes are counted: who calls, and who serves.
    towards : {"server", "client"}
        Which way the bytes go.
    after : int
        How many of them pass before.
    step : str, optional
        The referee's method whose call it happens at, instead.
    seconds : float, optional
        How long a blackhole or a pause lasts, for good where left out; by how much a delay holds each piece that
        arrives, and how long a throttled kibibyte takes.
    """

    trial: int = Field(strict=True, ge=1)
    kind: FaultKind
    party: Literal["compliance", "developer", "adversary"] | None = None
    link: LinkName | None = None
    towards: Literal["server", "client"] = "server"
    after: int = Field(default=0, strict=True, ge=0)
    step: StepName | None = None
    seconds: float | None = Field(default=None, strict=True, ge=0, le=3600)

    @model_validator(mode="after")
    def _befalls_something(self) -> Self:
        if (self.kind in OF_PARTIES) != (self.party is not None):
            raise ValueError(f"must have a party for {' or '.join(OF_PARTIES)}, and for nothing else")
        if self.party is None and self.link is None:
            raise ValueError(f"must have a link for {self.kind}")
        if self.link is None and self.step is None:
            raise ValueError("must have a step, or a link whose bytes are counted")
        if self.step is not None and self.after:
            raise ValueError("must have a step or after, not both")
        if self.kind in ("delay", "throttle") and self.seconds is None:
            raise ValueError(f"must have seconds for {self.kind}")
        return self


class FaultsSection(_Section):
    """What goes wrong between the parties: named faults, and others that are drawn for each trial."""

    seed: int = Field(default=0, strict=True, ge=0)
    per_trial: int = Field(default=0, strict=True, ge=0, le=100)
    kinds: tuple[FaultKind, ...] = get_args(FaultKind)
    links: tuple[LinkName, ...] = get_args(LinkName)
    parties: tuple[Literal["compliance", "developer", "adversary"], ...] = ("compliance", "developer", "adversary")
    at: tuple[Fault, ...] = ()
    deadline: float = Field(default=60.0, strict=True, gt=0, le=3600)

    @model_validator(mode="after")
    def _can_be_drawn(self) -> Self:
        for name in ("kinds", "links", "parties"):
            if self.per_trial and not getattr(self, name):
                raise ValueError(f"must have at least one of {name}")
        return self


class PaperFigure(_Section):
    """What a paper printed about a cell of this scenario, kept beside the scenario that plays it.

    Parameters
    ----------
    source : str
        Where it stands, and what of it is lost.
    where : dict
        The swept values, by dotted key, of the cells that it is about.
    data : str, optional
        What it was measured on, as ``source, protected``. The inference game's figures must say it: what was measured
        on other data is shown, and is no test of the figure.
    leakage, query_error_mean, recovered : float, optional
        Of the reveal game.
    gap_base, gap, eo_base, eo, label_gap, accuracy_base, accuracy : float, optional
        Of the inference game, in percentage points and percent.
    gap_ratio : float, optional
        The gap as a share of what it was before the defence, to a tenth.
    gap_change, eo_change : {"falls", "rises"}, optional
        What the defence did to the gap and to EO, where the numbers themselves are lost.
    below_tau, runs : int, optional
        In how many of how many runs the gap was at most 0.05.
    bound_holds : bool, optional
        Whether the mean gap was at most W times the mean EO, which is how the paper asks for Theorem 1's bound.
    """

    source: str
    where: dict[str, Any]
    data: str | None = None
    leakage: float | None = None
    query_error_mean: float | None = None
    recovered: float | None = None
    gap_base: float | None = None
    gap: float | None = None
    eo_base: float | None = None
    eo: float | None = None
    label_gap: float | None = None
    accuracy_base: float | None = None
    accuracy: float | None = None
    gap_ratio: float | None = None
    gap_change: Literal["falls", "rises"] | None = None
    eo_change: Literal["falls", "rises"] | None = None
    below_tau: int | None = Field(default=None, strict=True, ge=0)
    runs: int | None = Field(default=None, strict=True, ge=1)
    bound_holds: bool | None = None

    @model_validator(mode="after")
    def _says_of_what(self) -> Self:
        of_reveal = {"source", "where", "data", "leakage", "query_error_mean", "recovered"}
        if self.data is None and self.model_fields_set - of_reveal:
            raise ValueError('must name the data that it was measured on, as data = "source, protected"')
        if (self.below_tau is None) != (self.runs is None) or (self.below_tau or 0) > (self.runs or 0):
            raise ValueError("must have below_tau and runs together, the one at most the other")
        return self


class Scenario(_Section):
    """A validated scenario.

    Parameters
    ----------
    scenario, data, compliance, developer, adversary
        The sections of the file.
    sweep : dict of str to list, or several
        The grid: dotted keys to the values that each takes. Of several grids, over the same keys, one after the other.
    paper : tuple of PaperFigure
        Printed figures to show beside the measured ones.
    faults : FaultsSection, optional
        What goes wrong on purpose.
    replay : dict
        What to set, by dotted key, to play the scenario small: in seconds, so that tests play and replay it.
    """

    scenario: ScenarioSection
    data: DataSection
    compliance: ComplianceSection = NOT_ASKED
    developer: DeveloperSection = DeveloperSection()
    adversary: AdversarySection = AdversarySection()
    faults: FaultsSection | None = None
    sweep: dict[str, list[Any]] | tuple[dict[str, list[Any]], ...] = {}
    paper: tuple[PaperFigure, ...] = ()
    replay: dict[str, Any] = {}

    @property
    def axes(self) -> tuple[str, ...]:
        """The swept keys that tell cells apart: all but how often each is played."""
        return tuple(key for key in grids_of(self.sweep)[0] if key != _OFTEN)

    @property
    def people(self) -> int:
        """The size of the test set."""
        size = self.data.n if self.data.source == "synthetic" else self.data.test_size
        assert size is not None, "checked when the scenario was read"
        return size

    @property
    def epsilon(self) -> float:
        """The privacy budget of a trial, in epsilon."""
        return math.inf if self.compliance.epsilon is None else self.compliance.epsilon

    @property
    def batch_delta(self) -> float:
        """The delta of each batch: a trial asks at most two, the size query and the metric queries.

        A hidden test set takes one more, to be seen. The inference game asks one.
        """
        if self.scenario.game == "inference":
            return self.compliance.delta
        return self.compliance.delta / (3 if self.data.hidden else 2)

    @property
    def decoder(self) -> str:
        """The decoder's name; empty where the strategy reads the answers itself."""
        asked = self.developer.decoder
        own = next(iter(STRATEGIES[self.developer.strategy].decoders), "")
        return own if asked in (None, "own") else asked

    @property
    def perturbation(self) -> float:
        """How far the scores asked about may be from h0's, in [0, 1]."""
        asked = self.developer.perturbation
        return STRATEGIES[self.developer.strategy].perturbation if asked is None else asked

    @property
    def queries(self) -> int | Literal["n", "n-1", "needed"]:
        """How many metric queries are asked: so many, counted from the people of the stratum, or as many as needed."""
        if self.developer.queries is not None:
            return self.developer.queries
        strategy = STRATEGIES[self.developer.strategy]
        if strategy.adaptive:
            return "needed"
        counts = strategy.counts(self.people)
        return counts[0] if len(counts) == 1 and counts[0] != self.people else "n"


def grids_of(sweep: Any) -> Sequence[Any]:
    """Give the grids of a sweep, at least one."""
    return (sweep or ({},)) if isinstance(sweep, list | tuple) else (sweep,)


def as_values(scenario: Scenario) -> dict[str, Any]:
    """Turn a scenario into plain values, as a TOML or JSON file holds them; what is not set is left out."""
    values: dict[str, Any] = scenario.model_dump(mode="json", exclude_none=True, by_alias=True)
    return values
