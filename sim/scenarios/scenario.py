"""The part of a scenario file that all games share; each game has its own class besides."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, model_validator

from compliance.mechanisms import MECHANISMS, find_mechanism
from compliance.mechanisms.noise_on_gaps import Bounding, bounded
from fairwall.errors import NotOneOf, did_you_mean, nearest
from fairwall.laws.metrics.answer_precision import DECIMALS_MAX
from fairwall.laws.metrics.metric import key_of
from fairwall.laws.privacy.amounts import part_of
from fairwall.plugins import Registry
from fairwall.rpc.confine import LAYERS

EPSILON_MIN = 1e-6
"""Smallest epsilon of a trial: each query gets a share, and compliance refuses shares below
`fairwall.wire.numbers.EPSILON_MIN`."""

QUERIES_MAX = 10_000
"""Most queries in a trial, unless there are more people."""

_OFTEN = "scenario.trials"
"""A key that sweeps may set, but cells ignore."""


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
    """Return a number as files and results write it: infinity is "inf"."""
    return "inf" if math.isinf(value) else value


def one_of(names: Mapping[str, Any]) -> AfterValidator:
    """Return a validator that accepts only the names in a table."""

    def check(name: str) -> str:
        if name not in names:
            raise NotOneOf(names.known() if isinstance(names, Registry) else names)
        return name

    return AfterValidator(check)


def _one_line(value: str) -> str:
    if not value.isprintable():
        raise ValueError("must be one line of printable characters")
    return value


Line = Annotated[str, AfterValidator(_one_line)]
"""Words that are printed in terminals and reports."""

Epsilon = Annotated[float, Field(allow_inf_nan=True), BeforeValidator(_epsilon), PlainSerializer(plain)]


class ScenarioKeys(BaseModel):
    """A table of a scenario file: its keys and no others."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)


class ScenarioSection(ScenarioKeys):
    """The game to play, and the number of trials."""

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
"""The keys that assign roles to a table's columns and meanings to their values."""


class ScenarioTable(ScenarioKeys):
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
        """The columns or values of each role; None where the file leaves it out."""
        return {role: getattr(self, role) for role in ROLES}


class ComplianceSection(ScenarioKeys):
    """The policy: the metric, the mechanism, and the privacy budget."""

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


class InjectedFault(ScenarioKeys):
    """One fault, in a trial by its number within the run, from 1, and when it happens.

    It happens to a party or on a link, "<caller>-<server>": at a ``step``, a call of a method of the referee or of the
    game's own service, or once ``after`` bytes have passed one way on the link. ``seconds`` is the duration of a
    blackhole or a pause, for good where left out; the delay of each arriving piece; or the time of a throttled
    kibibyte.
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


class FaultsSection(ScenarioKeys):
    """Faults between the parties: named ones, and others that are drawn for each trial."""

    seed: int = Field(default=0, strict=True, ge=0)
    per_trial: int = Field(default=0, strict=True, ge=0, le=100)
    kinds: tuple[FaultKind, ...] = get_args(FaultKind)
    links: tuple[LinkName, ...] = get_args(LinkName)
    parties: tuple[Literal["compliance", "developer", "adversary"], ...] = ("compliance", "developer", "adversary")
    at: tuple[InjectedFault, ...] = ()
    deadline: float = Field(default=60.0, strict=True, gt=0, le=3600)

    @model_validator(mode="after")
    def _can_be_drawn(self) -> Self:
        for name in ("kinds", "links", "parties"):
            if self.per_trial and not getattr(self, name):
                raise ValueError(f"must have at least one of {name}")
        return self


class PaperFigure(ScenarioKeys):
    """A paper's printed figure about cells of this scenario.

    ``source`` is its place in the paper, with any loss; ``where`` are the values, by dotted key, of the cells it
    describes; of a list, any. A key set by ``--set`` or for a replay adds the file's value to ``where``, so that the
    figure describes nothing else. It was measured on ``data``, given as ``source, protected``; ``missing`` is what a
    reproduction needs and the paper leaves out.
    """

    source: str
    where: dict[str, Any]
    data: str | None = None
    missing: str | None = None


class Scenario(ScenarioKeys):
    """A validated scenario of any game; each game's own class adds its tables.

    ``sweep`` is a grid of dotted keys to lists of values, or several grids over the same keys, one after the other.
    ``replay`` holds the settings, by dotted key, that make the scenario short enough for tests to play and replay.
    """

    scenario: ScenarioSection
    compliance: ComplianceSection = NOT_ASKED
    faults: FaultsSection | None = None
    sweep: dict[str, list[Any]] | tuple[dict[str, list[Any]], ...] = {}
    paper: tuple[PaperFigure, ...] = ()
    replay: dict[str, Any] = {}

    chosen_with: ClassVar[Mapping[str, Sequence[tuple[str, bool]]]] = {}
    """Keys that a file sets to suit the value of another key, by that key: if its value changes, they return to their
    defaults, unless they are set too. The flag says whether swept keys do so as well."""

    @property
    def axes(self) -> tuple[str, ...]:
        """The swept keys that distinguish cells: all but the number of trials."""
        return tuple(key for key in grids_of(self.sweep)[0] if key != _OFTEN)

    @property
    def epsilon(self) -> float:
        """The privacy budget of a trial, in epsilon."""
        return math.inf if self.compliance.epsilon is None else self.compliance.epsilon

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that compliance may be asked for."""
        return (self.compliance.metric,)

    @property
    def batches(self) -> int:
        """Most batches of a trial; the delta of a trial is divided among them."""
        return 1

    @property
    def batch_delta(self) -> float:
        """The delta of each batch."""
        return part_of(self.compliance.delta, self.batches)

    @property
    def parts(self) -> tuple[Mapping[str, Any], ...]:
        """The keys that distinguish the lines of one trial in ``trials.jsonl``, in order; empty for a single line."""
        return ({},)

    def steps(self) -> tuple[str, ...]:
        """Return the calls by which parties take a trial on, in order: faults may happen at them."""
        return ()

    def problems(self) -> Iterator[str]:
        """Yield problems that no single key shows, each in one line that begins with a key."""
        return iter(())


def grids_of(sweep: Any) -> Sequence[Any]:
    """Return the grids of a sweep, at least one."""
    return (sweep or ({},)) if isinstance(sweep, list | tuple) else (sweep,)


def as_values(scenario: Scenario) -> dict[str, Any]:
    """Return a scenario as plain values, as a TOML or JSON file holds them; unset keys are left out."""
    values: dict[str, Any] = scenario.model_dump(mode="json", exclude_none=True, by_alias=True)
    return values


def common_problems(scenario: Scenario) -> Iterator[str]:
    """Yield problems of a scenario of any game."""
    for name in scenario.scenario.require:
        if name not in LAYERS:
            hint = did_you_mean(nearest(name, LAYERS))
            yield f"scenario.require: must be among {', '.join(LAYERS)}, not {name!r}{hint}"
    steps = scenario.steps()
    for fault in scenario.faults.at if scenario.faults is not None else ():
        if fault.step is not None and fault.step not in steps:
            hint = did_you_mean(nearest(fault.step, steps))
            yield f"faults.at: a trial of this scenario has the steps {', '.join(steps)}, not {fault.step!r}{hint}"


def mechanism_problems(scenario: Scenario) -> Iterator[str]:
    """Yield problems of the mechanism with the scenario's policy."""
    compliance = scenario.compliance
    name = compliance.mechanism
    mechanism = find_mechanism(name)
    if mechanism.guarantee == "none" and not math.isinf(scenario.epsilon):
        yield f'compliance.epsilon: mechanism {name} adds no noise, so it must be "inf", not {compliance.epsilon:,g}'
    if mechanism.guarantee != "none" and compliance.epsilon is None:
        yield f'compliance.epsilon: is missing; mechanism {name} needs a positive number or "inf"'
    try:
        refusal = bounded(mechanism, compliance.bounding).refuses(
            compliance.metric, scenario.epsilon, scenario.batch_delta
        )
    except ValueError as error:
        yield f"compliance.bounding: {error}"
        return
    if refusal is not None:
        yield f"compliance.mechanism: {name} does not answer {compliance.metric}: {refusal}"
