"""A scenario: one TOML file, read into one validated object.

A typo in a key is an error that names the key; a value that cannot be played is an error before any process starts.
"""

from __future__ import annotations

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
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError

from adversary.attacks import ATTACKS
from compliance.bounding import Bounding, bounded
from compliance.mechanisms import MECHANISMS
from developer.reveal import STRATEGIES, Strategy
from developer.service import ROWS_MAX
from fairwall.laws.metric import METRICS
from fairwall.laws.precision import DECIMALS_MAX
from fairwall.learning.defences import DEFENCES

SHIPPED = Path(__file__).parent / "scenarios"

PEOPLE_MAX = 10_000_000
"""The most synthetic people there can be."""

EPSILON_MIN = 1e-6
"""Each query of a trial gets a share of epsilon, and compliance answers none below 1e-12."""

QUERIES_MAX = 10_000
"""The most queries in a trial, unless there are more people than that."""

_LISTS = frozenset({"data.drop", "adversary.attack", "developer.knows"})
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


def _plain(value: float) -> float | str:
    return "inf" if math.isinf(value) else value


Epsilon = Annotated[float, Field(allow_inf_nan=True), BeforeValidator(_epsilon), PlainSerializer(_plain)]
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
    rehearsal: float = Field(default=0.2, strict=True, ge=0, le=1)
    purity: float = Field(default=1.0, strict=True, ge=0.5, le=1)
    victims: int = Field(default=20, strict=True, ge=2, le=100)
    rows: int = Field(default=0, strict=True, ge=0)
    other_rows: int = Field(default=0, strict=True, ge=0)
    steps: int = Field(default=0, strict=True, ge=0, le=100_000)
    tune_steps: int = Field(default=0, strict=True, ge=0, le=100_000)
    training_epsilon: float = Field(default=3.0, strict=True, gt=0)
    training_delta: float = Field(default=1e-5, strict=True, gt=0, lt=1)


class AdversarySection(_Section):
    """The outside adversary's part."""

    attack: tuple[str, ...] = Field(default=(), max_length=10)
    probes: int = Field(default=2000, strict=True, ge=2, le=100_000)
    shadows: int = Field(default=100, strict=True, ge=0, le=2000)
    answers: Literal["scores", "labels"] = "scores"
    adapts: bool = Field(default=True, strict=True)


class PaperFigure(_Section):
    """What a paper printed about a cell of this scenario, kept beside the scenario that plays it."""

    source: str
    where: dict[str, Any]
    leakage: float | None = None
    query_error_mean: float | None = None
    recovered: float | None = None


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
    """

    scenario: ScenarioSection
    data: DataSection
    compliance: ComplianceSection = ComplianceSection(mechanism="exact")
    developer: DeveloperSection = DeveloperSection()
    adversary: AdversarySection = AdversarySection()
    sweep: dict[str, list[Any]] | tuple[dict[str, list[Any]], ...] = {}
    paper: tuple[PaperFigure, ...] = ()

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

        A hidden test set takes one more, to be seen.
        """
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
    grids = _grids(values.get("sweep", {}))
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
    # The swept keys of the whole file take their first value where the section leaves them out.
    return Plan(cells[0].scenario, tuple(cells))


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
    section, field = _section_of(values, key, "--set")
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
    sections = ("scenario", "data", "compliance", "developer", "adversary")
    return [
        f"{section}.{field.alias or name}"
        for section in sections
        for name, field in Scenario.model_fields[section].annotation.model_fields.items()  # type: ignore[union-attr]
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
    depth = 3 if problem["loc"][0] == "paper" else 2
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
    yield from _reveal_problems(scenario) if scenario.scenario.game == "reveal" else _inference_problems(scenario)


def _inference_problems(scenario: Scenario) -> Iterator[str]:
    """Find what the inference game cannot be played with."""
    if scenario.data.source == "synthetic":
        yield "data.source: synthetic people have no features to learn from"
    if scenario.developer.defence not in DEFENCES:
        yield f"developer.defence: must be one of {', '.join(DEFENCES)}, not {scenario.developer.defence!r}"
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
