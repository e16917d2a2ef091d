"""What the scenario file of any game may hold, and what follows from it; each game has a class of its own besides."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, model_validator

from compliance.mechanisms import MECHANISMS
from compliance.mechanisms.bounding import Bounding
from fairwall.errors import NotOneOf
from fairwall.laws.decimals import part_of
from fairwall.laws.metric import key_of
from fairwall.laws.precision import DECIMALS_MAX
from fairwall.plugins import Table

EPSILON_MIN = 1e-6
"""Each query of a trial gets a share of epsilon; compliance answers none below `fairwall.wire.limits.EPSILON_MIN`."""

QUERIES_MAX = 10_000
"""The most queries in a trial, unless there are more people than that."""

_OFTEN = "scenario.trials"
"""Sweeps may set it, but cells ignore it."""


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
        raise ValueError(f'must be at least {EPSILON_MIN:,g}, or "inf"')
    return epsilon


def plain(value: float) -> float | str:
    """Write a number as files and results do: an infinite one is "inf"."""
    return "inf" if math.isinf(value) else value


def one_of(names: Mapping[str, Any]) -> AfterValidator:
    """Accept the names in a table alone."""

    def check(name: str) -> str:
        if name not in names:
            raise NotOneOf(names.known() if isinstance(names, Table) else names)
        return name

    return AfterValidator(check)


def _one_line(value: str) -> str:
    if not value.isprintable():
        raise ValueError("must be one line of printable characters")
    return value


Line = Annotated[str, AfterValidator(_one_line)]
"""Words that are printed in terminals and reports."""

Epsilon = Annotated[float, Field(allow_inf_nan=True), BeforeValidator(_epsilon), PlainSerializer(plain)]


class Section(BaseModel):
    """A table of a scenario file: its keys and no others."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)


class ScenarioSection(Section):
    """What is played, and how often."""

    name: Line = Field(min_length=1, max_length=80)
    game: str
    about: Line = ""
    trials: int = Field(default=1, strict=True, ge=1)
    seed: int = Field(default=0, strict=True, ge=0)
    secret: Literal["seed", "random"] = "seed"  # noqa: S105 - the name of a mode
    require: tuple[str, ...] = ()
    record: Literal["full", "digest", "none"] = "full"
    plugin_seconds: float | None = Field(default=None, gt=0, le=86_400)


ROLES = ("protected", "advantaged", "disadvantaged", "label", "positive", "negative", "missing_values")
"""The keys that say which columns of a table play which part, and what their values mean."""


class TableSection(Section):
    """The table, and its columns' roles."""

    source: str = Field(min_length=1)
    protected: str | None = None
    advantaged: str | None = None
    disadvantaged: str | tuple[str, ...] | None = None
    label: str | None = None
    positive: str | None = None
    negative: str | tuple[str, ...] | None = None
    missing_values: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()

    @property
    def roles(self) -> dict[str, Any]:
        """Each role, and the column or values that have it where the file says so."""
        return {role: getattr(self, role) for role in ROLES}


class ComplianceSection(Section):
    """The policy: what is answered, how, and at what privacy loss."""

    metric: Annotated[str, AfterValidator(key_of)] = "sp"
    mechanism: Annotated[str, one_of(MECHANISMS)]
    epsilon: Epsilon | None = None
    delta: float = Field(default=0.0, strict=True, ge=0, lt=1)
    noise: Literal["seeded", "system"] = "seeded"
    bounding: Bounding = "none"
    reveal_max: float = Field(default=1.0, strict=True, ge=0.5, le=1)
    precision: Literal["float64", "float32"] | Annotated[int, Field(strict=True, ge=0, le=DECIMALS_MAX)] = "float64"
    differencing: int = Field(default=0, strict=True, ge=0)


NOT_ASKED = ComplianceSection(mechanism="exact")

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
OF_PARTIES = ("kill", "pause")
"""The faults that happen to a party; the others happen on a link."""


class Fault(Section):
    """One fault, in a trial by its number within the run, from 1, and when it happens.

    It happens to a party or on a link, "<caller>-<server>": at a ``step``, a call of a method of the referee or of the
    game's own service, or once so many bytes have passed one way on the link. ``seconds`` are how long a blackhole or a
    pause lasts, for good where left out; by how much a delay holds each piece that arrives; and how long a throttled
    kibibyte takes.
    """

    trial: int = Field(strict=True, ge=1)
    kind: FaultKind
    party: Literal["compliance", "developer", "adversary"] | None = None
    link: LinkName | None = None
    towards: Literal["server", "client"] = "server"
    after: int = Field(default=0, strict=True, ge=0)
    step: str | None = None
    seconds: float | None = Field(default=None, strict=True, ge=0, le=3600)

    @model_validator(mode="after")
    def _happens_to_something(self) -> Self:
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


class FaultsSection(Section):
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


class PaperFigure(Section):
    """What a paper printed about a cell of this scenario, kept beside the scenario that plays it.

    ``source`` is where it stands, and what of it is lost; ``where`` are the values, by dotted key, of the cells that it
    is about; of a list, any. What is set besides the file, by ``--set`` or for a replay, adds what the file has there:
    the figure is about nothing else. It was measured on ``data``, given as ``source, protected``; what the paper leaves
    out that it takes to do the same again is ``missing``.
    """

    source: str
    where: dict[str, Any]
    data: str | None = None
    missing: str | None = None


class Scenario(Section):
    """A validated scenario of any game; each game's own class adds its tables.

    ``sweep`` is a grid of dotted keys to the values that each takes, or several over the same keys, one after the
    other. ``replay`` is what to set, by dotted key, to play the scenario in seconds, so that tests play and replay it.
    """

    scenario: ScenarioSection
    compliance: ComplianceSection = NOT_ASKED
    faults: FaultsSection | None = None
    sweep: dict[str, list[Any]] | tuple[dict[str, list[Any]], ...] = {}
    paper: tuple[PaperFigure, ...] = ()
    replay: dict[str, Any] = {}

    chosen_with: ClassVar[Mapping[str, Sequence[tuple[str, bool]]]] = {}
    """By dotted key the keys that a file chooses for its value: another value leaves them to their defaults, unless
    they are set too; what is swept as well, or not."""

    @property
    def axes(self) -> tuple[str, ...]:
        """The swept keys that tell cells apart: all but how often each is played."""
        return tuple(key for key in grids_of(self.sweep)[0] if key != _OFTEN)

    @property
    def epsilon(self) -> float:
        """The privacy budget of a trial, in epsilon."""
        return math.inf if self.compliance.epsilon is None else self.compliance.epsilon

    @property
    def metrics(self) -> tuple[str, ...]:
        """What compliance may be asked for."""
        return (self.compliance.metric,)

    @property
    def batches(self) -> int:
        """How many batches a trial asks at most; the delta of a trial is shared out among them."""
        return 1

    @property
    def batch_delta(self) -> float:
        """The delta of each batch."""
        return part_of(self.compliance.delta, self.batches)

    @property
    def parts(self) -> tuple[Mapping[str, Any], ...]:
        """What tells the lines of one trial in ``trials.jsonl`` apart, in their order; one line needs nothing."""
        return ({},)

    def steps(self) -> tuple[str, ...]:
        """List the calls by which parties take a trial on, in order: faults may happen at them."""
        return ()

    def problems(self) -> Iterator[str]:
        """Find what no single key shows, each in one line that begins with a key."""
        return iter(())


def grids_of(sweep: Any) -> Sequence[Any]:
    """Give the grids of a sweep, at least one."""
    return (sweep or ({},)) if isinstance(sweep, list | tuple) else (sweep,)


def as_values(scenario: Scenario) -> dict[str, Any]:
    """Turn a scenario into plain values, as a TOML or JSON file holds them; what is not set is left out."""
    values: dict[str, Any] = scenario.model_dump(mode="json", exclude_none=True, by_alias=True)
    return values
