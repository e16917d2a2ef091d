"""A scenario: one TOML file, read into one validated object.

A typo in a key is an error that names the key; a value that cannot be played is an error before any process starts.
"""

from __future__ import annotations

import copy
import difflib
import hashlib
import itertools
import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError, model_validator

from adversary.attacks import ATTACKS
from compliance.bounding import Bounding, bounded
from compliance.mechanisms import MECHANISMS
from developer.reveal import STRATEGIES, Strategy
from developer.service import ROWS_MAX
from fairwall.laws.metric import METRICS
from fairwall.laws.precision import DECIMALS_MAX
from fairwall.learning.defences import DEFENCES
from fairwall.rpc.confine import LAYERS

SHIPPED = Path(__file__).parent / "scenarios"

PEOPLE_MAX = 10_000_000
"""The most synthetic people there can be."""

EPSILON_MIN = 1e-6
"""Each query of a trial gets a share of epsilon, and compliance answers none below 1e-12."""

QUERIES_MAX = 10_000
"""The most queries in a trial, unless there are more people than that."""

_LISTS = frozenset(
    {
        *("scenario.require", "data.drop", "adversary.attack", "developer.knows", "developer.lambdas"),
        *("faults.kinds", "faults.links", "faults.parties", "faults.at"),
    }
)
"""Keys whose value is a list by nature: setting them to a list sweeps nothing."""


_OFTEN = "scenario.trials"
"""Grids may set it, but it says nothing about a cell."""


class ScenarioError(ValueError):
    """A scenario that cannot be played. Its text is one line that names the key and what would be right."""


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


_NOT_ASKED = ComplianceSection(mechanism="exact")


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
    compliance: ComplianceSection = _NOT_ASKED
    developer: DeveloperSection = DeveloperSection()
    adversary: AdversarySection = AdversarySection()
    faults: FaultsSection | None = None
    sweep: dict[str, list[Any]] | tuple[dict[str, list[Any]], ...] = {}
    paper: tuple[PaperFigure, ...] = ()
    replay: dict[str, Any] = {}

    @property
    def axes(self) -> tuple[str, ...]:
        """The swept keys that tell cells apart: all but how often each is played."""
        return tuple(key for key in _grids(self.sweep)[0] if key != _OFTEN)

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


@dataclass(frozen=True)
class Cell:
    """One combination of a sweep: the swept values by dotted key, and the scenario with them in place."""

    swept: Mapping[str, Any]
    scenario: Scenario


@dataclass(frozen=True)
class Plan:
    """A scenario ready to be played: the whole file as validated, and its cells."""

    scenario: Scenario
    cells: tuple[Cell, ...]

    @property
    def digest(self) -> str:
        """SHA-256 of the scenario without its seed: what the parties may know of it."""
        values = as_values(self.scenario)
        values.pop("replay")
        values["scenario"].pop("seed", None)
        for grid in _grids(values["sweep"]):
            grid.pop("scenario.seed", None)
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def shipped() -> dict[str, Path]:
    """List the scenarios that come with fairwall, by name."""
    return {path.stem: path for path in sorted(SHIPPED.glob("*.toml"))}


def read(name_or_file: str, settings: Sequence[str] = ()) -> Plan:
    """Read a scenario.

    Parameters
    ----------
    name_or_file : str
        A shipped scenario's name or the path of a TOML file.
    settings : sequence of str
        ``dotted.key=value``, the value in TOML or a bare string. Setting a swept key replaces that axis; a list sweeps.

    Raises
    ------
    ScenarioError
        With one line that names the file, the key and what is wrong.
    """
    path = shipped().get(name_or_file, Path(name_or_file))
    values = _load(path, name_or_file)
    for setting in settings:
        _set(values, setting)
    return plan(values, path.name)


def at_replay_size(whole: Plan) -> Plan:
    """Give a plan of the same scenario as small as its table ``replay`` says."""
    name = whole.scenario.scenario.name
    return plan(_small(as_values(whole.scenario), name), f"{name}: replay")


def _small(values: Mapping[str, Any], origin: str) -> dict[str, Any]:
    """Set what the table ``replay`` says, and leave the table out.

    Raises
    ------
    ScenarioError
        If it names a key that there is not.
    """
    small = copy.deepcopy({name: section for name, section in values.items() if name != "replay"})
    for key, value in values["replay"].items():
        _section_of(small, key, f"{origin}: replay")
        _put(small, key, value)
    return small


def plan(values: Mapping[str, Any], origin: str) -> Plan:
    """Validate a scenario's values and lay out its cells.

    Parameters
    ----------
    values : mapping
        What the TOML file holds.
    origin : str
        Named at the start of an error.

    Raises
    ------
    ScenarioError
    """
    values = {**values, "sweep": _spelled(values.get("sweep", {}))}
    grids = _grids(values["sweep"])
    for grid in grids:
        if not isinstance(grid, dict):
            raise ScenarioError(f"{origin}: sweep: must be a table of dotted keys and lists, or several")
        for key, choices in grid.items():
            _section_of(values, key, origin)
            if not isinstance(choices, list) or not choices:
                raise ScenarioError(f"{origin}: sweep.{key}: must be a list with at least one value")
        if grid.keys() != grids[0].keys():
            raise ScenarioError(f"{origin}: sweep: several grids must sweep the same keys")
    cells: list[Cell] = []
    for swept in _combinations(grids):
        merged = {name: dict(section) if isinstance(section, dict) else section for name, section in values.items()}
        for key, value in swept.items():
            section, _, field = key.partition(".")
            merged.setdefault(section, {})[field] = value
        scenario = _validate(merged, origin)
        # As validated: an infinite value is "inf" however the file writes it.
        plain = as_values(scenario)
        cell = Cell({key: _at(plain, key) for key in scenario.axes}, scenario)
        # Two grids may share a combination, once a key that told them apart is set.
        if cell.swept not in [other.swept for other in cells]:
            cells.append(cell)
    if cells[0].scenario.replay:
        # The values are looked at where they are used: a key that was set besides may not go with them.
        _small(values, origin)
    # The swept keys of the whole file take their first value where the section leaves them out.
    return Plan(cells[0].scenario, tuple(cells))


def _spelled(value: Any) -> Any:
    """Spell an infinite number in a sweep as files and results do: "inf"."""
    if isinstance(value, dict):
        return {key: _spelled(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_spelled(item) for item in value]
    return "inf" if value == math.inf else value


def _grids(sweep: Any) -> Sequence[Any]:
    """Give the grids of a sweep, at least one."""
    return (sweep or ({},)) if isinstance(sweep, list | tuple) else (sweep,)


def _combinations(grids: Sequence[Mapping[str, Sequence[Any]]]) -> Iterator[dict[str, Any]]:
    for grid in grids:
        for combination in itertools.product(*(grid[key] for key in grids[0])):
            yield dict(zip(grids[0], combination, strict=True))


def as_values(scenario: Scenario) -> dict[str, Any]:
    """Turn a scenario into plain values, as a TOML or JSON file holds them; what is not set is left out."""
    values: dict[str, Any] = scenario.model_dump(mode="json", exclude_none=True, by_alias=True)
    return values


def _at(values: Mapping[str, Any], key: str) -> Any:
    section, _, field = key.partition(".")
    return values[section][field]


def _load(path: Path, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, IsADirectoryError):
        near = difflib.get_close_matches(name, shipped(), n=1)
        hint = f"; did you mean {near[0]}?" if near else "; `fairwall list` names the shipped ones"
        raise ScenarioError(f"no scenario or file {name!r}{hint}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8 text'}") from None
    except (ValueError, RecursionError) as error:  # a number too long, brackets too deep
        raise ScenarioError(f"{path}: not valid TOML: {error}") from None


def _set(values: dict[str, Any], setting: str) -> None:
    key, equals, text = setting.partition("=")
    key = key.strip()
    if not equals:
        raise ScenarioError(f"--set {_named(setting)}: must be dotted.key=value")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        value = text.strip()
    _section_of(values, key, "--set")
    _put(values, key, value)


def _put(values: dict[str, Any], key: str, value: Any) -> None:
    """Set a known key; a list sweeps it, unless it is one by nature."""
    section, _, field = key.partition(".")
    values.setdefault("sweep", {})
    grids = _grids(values["sweep"])
    if not all(isinstance(grid, dict) for grid in grids):
        raise ScenarioError("sweep: must be a table of dotted keys and lists, or several")
    sweeps = isinstance(value, list) and key not in _LISTS
    for grid in grids:
        if sweeps:
            grid[key] = value
        else:
            grid.pop(key, None)
    if not sweeps:
        values.setdefault(section, {})[field] = value


def _section_of(values: Mapping[str, Any], key: str, origin: str) -> tuple[str, str]:
    """Split a dotted key and check that the schema has it."""
    section, _, field = key.partition(".")
    known = _keys()
    if key not in known:
        raise ScenarioError(f"{origin}: {_named(key)}: unknown key{_hint(key, known)}")
    if not isinstance(values.get(section, {}), dict):
        raise ScenarioError(f"{origin}: {section}: must be a table")
    return section, field


def _keys() -> list[str]:
    names = ("scenario", "data", "compliance", "developer", "adversary")
    sections: dict[str, Any] = {name: Scenario.model_fields[name].annotation for name in names}
    return [
        f"{section}.{field.alias or name}"
        for section, keys in (sections | {"faults": FaultsSection}).items()
        for name, field in keys.model_fields.items()
    ]


def _named(key: str) -> str:
    """Write a key on one line, whatever it holds."""
    return key if key.isprintable() else repr(key)


def _hint(key: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(key, known, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _validate(values: Mapping[str, Any], origin: str) -> Scenario:
    try:
        scenario = Scenario.model_validate(values)
    except ValidationError as error:
        raise ScenarioError(f"{origin}: {_first(error)}") from None
    for problem in _problems(scenario):
        raise ScenarioError(f"{origin}: {problem}")
    return scenario


def _first(error: ValidationError) -> str:
    """Say the first thing that pydantic found, in one line."""
    problem = error.errors(include_url=False)[0]
    # A key within a section, or one within a list's entry; what follows is pydantic's own.
    depth = 3 if problem["loc"][0] == "paper" else 4 if problem["loc"][:2] == ("faults", "at") else 2
    key = _named(".".join(str(part) for part in problem["loc"][:depth]))
    match problem["type"]:
        case "extra_forbidden":
            known = _keys() if "." in key else list(Scenario.model_fields)
            return f"{key}: unknown key{_hint(key, known)}"
        case "missing":
            return f"{key}: is missing"
        case "value_error":
            return f"{key}: {problem['ctx']['error']}, not {problem['input']!r}"
        case _:
            if key == "developer.queries":
                ways = 'an integer of at least 1, "n", "n-1" or "needed"'
                return f"{key}: must be {ways}, not {problem['input']!r}"
            if key == "compliance.precision":
                ways = f'"float64", "float32" or a number of decimals from 0 to {DECIMALS_MAX}'
                return f"{key}: must be {ways}, not {problem['input']!r}"
            message = re.sub(r"^\w+ should ", "", problem["msg"])
            return f"{key}: must {message}, not {problem['input']!r}"


def _problems(scenario: Scenario) -> Iterator[str]:
    """Find what no single key shows."""
    for name in scenario.scenario.require:
        if name not in LAYERS:
            yield f"scenario.require: must be among {', '.join(LAYERS)}, not {name!r}"
    yield from _reveal_problems(scenario) if scenario.scenario.game == "reveal" else _inference_problems(scenario)


def _inference_problems(scenario: Scenario) -> Iterator[str]:
    """Find what the inference game cannot be played with."""
    if scenario.data.source == "synthetic":
        yield "data.source: synthetic people have no features to learn from"
    developer = scenario.developer
    if developer.defence not in DEFENCES:
        yield f"developer.defence: must be one of {', '.join(DEFENCES)}, not {developer.defence!r}"
    if developer.defence == "fft-multi" and not scenario.data.also_protected:
        yield "data.also_protected: is missing; fft-multi looks at several attributes"
    if scenario.data.protected in scenario.data.also_protected:
        yield f"data.also_protected: {scenario.data.protected} is the attribute that the game is about"
    if developer.lambdas:
        yield from _choice_problems(scenario)
    elif scenario.compliance != _NOT_ASKED:
        yield "compliance: is not dealt in; only developer.lambdas ask it anything"
    adversary = scenario.adversary
    if not adversary.attack:
        yield f"adversary.attack: is missing; one or more of {', '.join(ATTACKS)}"
    for name in adversary.attack:
        if name not in ATTACKS:
            yield f"adversary.attack: must be among {', '.join(ATTACKS)}, not {name!r}"
        elif ATTACKS[name].needs == "scores" and adversary.answers == "labels":
            yield f"adversary.attack: {name} needs scores, but adversary.answers are labels"
        elif ATTACKS[name].shadows and adversary.shadows < 2:
            yield f"adversary.shadows: {name} needs at least 2, half with either bit"
    if len(set(adversary.attack)) != len(adversary.attack):
        yield "adversary.attack: names an attack twice"


def _choice_problems(scenario: Scenario) -> Iterator[str]:
    """Find what lambda cannot be chosen by."""
    tuned = [name for name in DEFENCES if "fft" in name]
    if scenario.developer.defence not in tuned:
        yield f"developer.lambdas: only for a defence that takes one ({', '.join(tuned)})"
    if "compliance" not in scenario.model_fields_set:
        yield "compliance: is missing; developer.lambdas are chosen by its answers"
    if scenario.compliance.metric != "eodds_max":
        yield f"compliance.metric: lambda is chosen by eodds_max, the game's EO, not by {scenario.compliance.metric}"
    yield from _mechanism_problems(scenario)


def _reveal_problems(scenario: Scenario) -> Iterator[str]:
    """Find what the reveal game cannot be played with."""
    data, compliance, developer = scenario.data, scenario.compliance, scenario.developer
    if "compliance" not in scenario.model_fields_set:
        yield "compliance: is missing"
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
    yield from _mechanism_problems(scenario)
    strategy = STRATEGIES.get(developer.strategy)
    if strategy is None:
        yield f"developer.strategy: must be one of {', '.join(STRATEGIES)}, not {developer.strategy!r}"
        return
    if compliance.metric not in strategy.metrics:
        readable = ", ".join(metric for metric in METRICS if metric in strategy.metrics)
        yield f"developer.strategy: {strategy.name} reads {readable}, not {compliance.metric}"
    if strategy.mechanism is not None and compliance.mechanism != strategy.mechanism:
        yield (
            f"developer.strategy: {strategy.name} reads answers of mechanism {strategy.mechanism}, "
            f"not of {compliance.mechanism}"
        )
    if compliance.metric == "eodds_max" and scenario.perturbation < 1:
        yield (
            "developer.perturbation: near the base model one stratum's gap hides smaller ones of the other from "
            "eodds_max; 1, or leave it out"
        )
    special = compliance.metric == "ppv" or compliance.mechanism == "pass-fail"
    if compliance.metric == "ppv" and not math.isinf(scenario.epsilon):
        yield f'compliance.metric: strategy {strategy.name} reads ppv from exact answers only, so epsilon must be "inf"'
    if (strategy.free or (strategy.name == "best" and special)) and scenario.perturbation < 1:
        yield f"developer.perturbation: strategy {strategy.name} asks about free rows: 1, or leave it out"
    if strategy.exact and not math.isinf(scenario.epsilon):
        yield f'developer.strategy: {strategy.name} reads exact answers only, so epsilon must be "inf"'
    if developer.public_sample % 2:
        yield f"developer.public_sample: must be even, half of each group, not {developer.public_sample}"
    if developer.public_sample and data.source == "synthetic":
        yield "developer.public_sample: synthetic people have no features to predict a group from; leave it out"
    if developer.decoder not in (None, "own", *strategy.decoders):
        allowed = f"works with {' or '.join(strategy.decoders)}" if strategy.decoders else "reads the answers itself"
        yield f"developer.decoder: strategy {strategy.name} {allowed}, not with {developer.decoder!r}"
    yield from _query_problems(scenario, strategy)


def _hidden_problems(scenario: Scenario) -> Iterator[str]:
    """Find what cannot be played about a test set that the developer is not given."""
    if METRICS[scenario.compliance.metric].labelled:
        allowed = ", ".join(name for name, metric in METRICS.items() if not metric.labelled)
        yield f"data.hidden: only metrics without labels ({allowed}), not {scenario.compliance.metric}"
    if scenario.data.source != "synthetic" and not scenario.data.train_share:
        yield "data.hidden: the base model cannot be trained on the test set: data.train_share must be above 0"
    if scenario.people > ROWS_MAX:
        yield f"data.hidden: a model is asked about at most {ROWS_MAX} people, not {scenario.people}"


def _mechanism_problems(scenario: Scenario) -> Iterator[str]:
    """Find what the mechanism cannot answer."""
    compliance = scenario.compliance
    name = compliance.mechanism
    mechanism = MECHANISMS.get(name)
    if mechanism is None:
        yield f"compliance.mechanism: must be one of {', '.join(MECHANISMS)}, not {name!r}"
        return
    if mechanism.guarantee == "none" and not math.isinf(scenario.epsilon):
        yield f'compliance.epsilon: mechanism {name} adds no noise, so it must be "inf", not {compliance.epsilon:g}'
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


def _query_problems(scenario: Scenario, strategy: Strategy) -> Iterator[str]:
    """Find a number of queries that the strategy cannot ask."""
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
    if asked == "needed" and strategy.adaptive:
        if not math.isinf(scenario.epsilon):
            yield "developer.queries: is missing; epsilon is shared out among so many"
    elif scenario.developer.queries is None and len(counts) > 2:
        yield "developer.queries: is missing"
    elif isinstance(asked, int) and asked > most:
        yield f"developer.queries: must be at most {most}, not {asked}"
    elif isinstance(asked, int):
        # Who asks one query a person counts the people of the stratum, which vary with the test set.
        varies = by_people and METRICS[scenario.compliance.metric].label is not None
        if asked not in counts or varies:
            yield f"developer.queries: strategy {strategy.name} {wanted}, not {asked}"
    elif not by_people:
        yield f'developer.queries: strategy {strategy.name} {wanted}, not "{asked}"'
    elif asked == "n-1" and people - 1 not in counts:
        yield f'developer.queries: strategy {strategy.name} {wanted}, not "n-1"'
