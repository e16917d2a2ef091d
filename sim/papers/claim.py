"""The claims of a paper, read from a TOML file: each with a test, or with the reason why there is none.

The file has a table ``paper`` and a list of ``claim``. A test has one of four sources: ``play``, a scenario and further
settings, whose lines of ``trials.jsonl`` are measured; ``table``, a CSV file of the user's, named on the command line,
whose rows are; ``measure``, a function that returns lines, from shipped data or from the user's files that ``data``
names; and ``check``, a function that looks for a counterexample to a theorem.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from fairwall import toml
from fairwall.errors import UserError, did_you_mean, nearest
from sim.papers.values import Value, ValueRefused
from sim.report.estimates import Range
from sim.report.reproduction import region

SHIPPED = Path(__file__).parent

Words = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]+$", max_length=500)]
"""One printable line of text."""

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9-]{0,39}$")]
"""The name of a paper or a claim; a claim's evidence is a file of this name."""

Function = Annotated[str, StringConstraints(pattern=r"^\w+(\.\w+)*:\w+$")]
"""A function by ``module:name``; a module without a dot is in `sim.papers.checks`."""

Condition = bool | int | float | str | tuple[bool | int | float | str, ...]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Prediction(_Table):
    """A number for which the claim gives a region.

    The region is the ``printed`` number, with the paper's standard deviation if it has one, and a margin around it; or
    ``between`` two ends, one of which may be infinite. ``value`` is a formula over the lines of one unit
    (`sim.papers.values`); ``of`` has the values, or lists of values, of these lines' keys, by name where ``value``
    names several kinds, which agree on the keys of ``pair``. ``within`` is the range of possible measurements.
    """

    value: str = Field(max_length=500)
    of: dict[str, Condition | dict[str, Condition]] = {}
    pair: tuple[str, ...] = ()
    within: tuple[float, float] = (-math.inf, math.inf)
    printed: float | None = None
    sd: float | None = Field(default=None, ge=0)
    margin: float = Field(default=0.0, ge=0)
    between: tuple[float, float] | None = None

    @model_validator(mode="after")
    def _has_a_region(self) -> Self:
        if (self.printed is None) == (self.between is None):
            raise ValueError("give what is `printed`, with `sd` and `margin`, or the ends it lies `between`")
        if self.between is not None and (self.sd is not None or self.margin):
            raise ValueError("`sd` and `margin` go with what is `printed`")
        for low, high in (self.within, self.region):
            if not low < high and self.between is not None and low != high:
                raise ValueError(f"{low:g} to {high:g}: the first is to be the lower end")
        try:
            _ = self.measured
        except ValueRefused as error:
            raise ValueError(f"value: {error}") from None
        return self

    @cached_property
    def region(self) -> Range:
        """The predicted region, both ends included."""
        if self.between is not None:
            return self.between
        assert self.printed is not None, "one of the two is given"
        return region(self.printed, self.sd, self.margin)

    @cached_property
    def measured(self) -> Value:
        """The formula of the measured value."""
        named = {name: dict(keys) for name, keys in self.of.items() if isinstance(keys, dict)}
        if named and len(named) != len(self.of):
            raise ValueRefused("`of` is conditions, or names with conditions each")
        return Value.parse(self.value, named or {"": self.of}, self.pair)


class ClaimTest(_Table):
    """The test of a claim, from one source: ``play``, ``table``, ``measure`` or ``check``.

    Attributes
    ----------
    set, trials, seed : for `play`, further settings, and values in place of the scenario's.
    data : names of the user's files that are needed.
    unit : the key of a line that numbers independent units: a trial, a split, a seed.
    least : fewest units that decide.
    exact : whether the lines are complete, such as a whole table: a value then has no interval.
    predicts : predictions, all of which have to hold.
    """

    play: str | None = None
    table: str | None = None
    measure: Function | None = None
    check: Function | None = None
    set: dict[str, Any] = {}
    trials: int | None = Field(default=None, ge=1)
    seed: int | None = Field(default=None, ge=0)
    data: tuple[Name, ...] = ()
    unit: str = "trial"
    least: int = Field(default=5, ge=1)
    exact: bool = False
    predicts: tuple[Prediction, ...] = ()

    @model_validator(mode="after")
    def _has_a_source(self) -> Self:
        if sum(source is not None for source in (self.play, self.table, self.measure, self.check)) != 1:
            raise ValueError("give one of `play`, `table`, `measure` and `check`")
        if (self.check is None) != bool(self.predicts):
            raise ValueError("a `check` predicts nothing" if self.predicts else "say what the claim `predicts`")
        if self.table is not None and self.data != (self.table,):
            object.__setattr__(self, "data", (self.table,))
        if self.play is None and (self.set or self.trials or self.seed):
            raise ValueError("`set`, `trials` and `seed` go with `play`")
        return self


class PaperClaim(_Table):
    """One claim: its place in the paper, what it says in our words, and its test or the reason why there is none.

    ``missing`` is what a test would need; ``note`` a remark on the test or its result; ``figure`` a function that
    draws.
    """

    id: Name
    where: Words
    kind: Literal["theorem", "number", "figure", "recommendation"]
    says: Words
    test: ClaimTest | None = None
    status: Literal["not tested", "lost", "unplayable"] | None = None
    missing: Words | None = None
    note: Words | None = None
    figure: Function | None = None

    @model_validator(mode="after")
    def _is_tested_or_not(self) -> Self:
        if (self.test is None) == (self.status is None):
            raise ValueError("give a `test`, or a `status` that says why there is none")
        if (self.status is None) != (self.missing is None):
            raise ValueError("`missing` goes with `status`: it says what a test would take")
        return self


class _About(_Table):
    key: Name
    title: Words


class _File(_Table):
    paper: _About
    claim: tuple[PaperClaim, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _names_each_claim_once(self) -> Self:
        names = [claim.id for claim in self.claim]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"{twice}: two claims of that id")
        return self


@dataclass(frozen=True)
class Paper:
    """A paper, its claims in its file's order, and the folder of their evidence."""

    key: str
    title: str
    claims: tuple[PaperClaim, ...]
    evidence: Path


def papers(folder: Path = SHIPPED) -> tuple[Paper, ...]:
    """Read the papers of a folder, in the order of file names; UserError is one line on the file, place and fault."""
    files = sorted(folder.glob("*.toml"))
    if not files:
        raise UserError(f"{folder}: no paper's claims: a folder of TOML files is needed, one a paper")
    found = [_read(path) for path in files]
    named: dict[str, str] = {}
    for path, paper in zip(files, found, strict=True):
        for claim in paper.claims:
            if claim.id in named:
                raise UserError(f"{path}: claim {claim.id}: {named[claim.id]} has a claim of that id")
            named[claim.id] = path.name
    return tuple(found)


def _read(path: Path) -> Paper:
    try:
        read = _File.model_validate(toml.read(path))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8 text'}") from None
    except toml.TomlError as error:
        raise UserError(f"{path}: not valid TOML: {error}") from None
    except ValidationError as error:
        raise UserError(f"{path}: {_first(error, path)}") from None
    return Paper(read.paper.key, read.paper.title, read.claim, path.parent / "evidence")


def _first(error: ValidationError, path: Path) -> str:
    """Return the first error in one line, by the claim's id rather than its number."""
    problem = error.errors()[0]
    place = list(problem["loc"])
    claims: Any = toml.read(path).get("claim")
    if len(place) > 1 and place[0] == "claim" and isinstance(place[1], int) and isinstance(claims, list):
        claim = claims[place[1]]
        name = claim.get("id") if isinstance(claim, dict) else None
        place[:2] = [f"claim {name if isinstance(name, str) else place[1] + 1}"]
    said = problem["msg"].removeprefix("Value error, ")
    if problem["type"] != "value_error":
        said = said[:1].lower() + said[1:]
    return ": ".join([*([".".join(map(str, place))] if place else []), said])


def find(papers: tuple[Paper, ...], name: str) -> tuple[Paper, PaperClaim]:
    """Return a claim and its paper by the claim's id; UserError if there is none."""
    found: Mapping[str, tuple[Paper, PaperClaim]] = {
        claim.id: (paper, claim) for paper in papers for claim in paper.claims
    }
    if name not in found:
        hint = did_you_mean(nearest(name, found)) or "; `fairwall papers list` lists them"
        raise UserError(f"no claim {name!r}{hint}")
    return found[name]
