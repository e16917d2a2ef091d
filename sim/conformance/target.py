"""The tester's description of the server under test: a small TOML file, and the certificates to call it with."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fairwall import toml
from fairwall.arrays import Bytes, Floats
from fairwall.laws.metrics.answer_precision import Precision
from fairwall.rpc.identity import NAME, Credentials
from fairwall.wire.rows import RowsError, ids_of
from sim.conformance import certificates
from sim.conformance.inputs import ConformanceError, read_text


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class DescribedColumn(_Section):
    """A released column: its name, its values in the order of the encodings, its share of epsilon."""

    name: str
    values: tuple[str, ...]
    share: float


class Releases(_Section):
    """The attributes that a deployment of compliance releases, as in its policy, about this many people.

    Columns are in the order of the encodings; `shares` has each developer's budget. `table` is a CSV of these people
    and columns, if the tester knows it.
    """

    people: int
    protocol: str
    columns: tuple[DescribedColumn, ...] = Field(min_length=1)
    shares: Mapping[str, float] = Field(default_factory=dict)
    table: str = ""


class Probabilities(_Section):
    """An attribute known by probabilities: the column of each value's probability, and that of the golden sample."""

    columns: Mapping[str, str]
    golden: str


class DescribedDeployment(_Section):
    """A deployment of a server under test, as in its policy.

    Compliance has several, which differ as the cases say: ``mirror`` has other people than ``main`` and is otherwise
    the same, ``little`` has a budget that is soon spent, ``lopsided`` cannot be audited. The developer has ``model``,
    the referee ``game``. Each data set of a deployment is described by itself: the deployment that it is `of` serves
    it. So is each service of one ledger: the second is served `beside` the first, from its folder.

    It answers at `address`, unless a command starts it with a file (`policy`) and a folder of certificates
    (`credentials`). A server may refuse to serve an `optional` deployment, whose checks are then not run.

    From a policy of compliance: `people` is the size of the test set, and `table` has it, if the tester knows it. A
    batch spends from `epsilon_min` to `epsilon_max`, and a mechanism that looks at predictions reveals at most
    `reveal_max`. `unit` is the smallest charge that the remaining budget shows. `precision`, `bounding` and `rule` say
    how answers are rounded and bounded, and how losses add up. Each batch costs `batch_delta`; `delta` is that of the
    budget, and of every share. Each group has at least `minimum_group` people in what a metric looks at: noise relies
    on it. `by` has the protected columns, each with the values of its advantaged group; the first is the default, and
    if there is none, the column ``advantaged`` with the value 1. `groups` has the columns that people are counted by,
    with all values of each; `measures` those that may be requested, `least_share` the share of the people that a group
    needs to be compared, `probabilities` the columns that are known by probabilities. `ids` is the column of ids, if
    there is one; `public` has further columns that both sides know.

    Model k, from 0, of the developer scores 1 / (1 + exp(-(k + 1) x.w)), where w are `weights`. The first one is
    released. A `request` about `models` models is under way.
    """

    address: str = ""
    optional: bool = False
    policy: str = ""
    credentials: str = "compliance"
    deal: str = ""
    people: int = 0
    metrics: tuple[str, ...] = ()
    mechanism: str = ""
    queries_max: int = 0
    epsilon_max: float = 0.0
    epsilon_min: float = 0.0
    reveal_max: float = 1.0
    budget: float = 0.0
    unit: float = Field(default=1.0, gt=0)
    precision: Precision = "float64"
    bounding: str = "none"
    rule: str = "basic"
    batch_delta: float = 0.0
    delta: float = 0.0
    shares: Mapping[str, float] = Field(default_factory=dict)
    table: str = ""
    minimum_group: int = 1
    by: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    probabilities: Mapping[str, Probabilities] = Field(default_factory=dict)
    measures: tuple[str, ...] = ()
    least_share: float = 0.0
    ids: str = ""
    public: tuple[str, ...] = ()
    of: str = ""
    beside: str = ""
    releases: Releases | None = None
    weights: tuple[float, ...] = ()
    request: str = ""
    models: int = 0

    @property
    def features(self) -> int:
        """Number of features of a person."""
        return len(self.weights)


class _File(_Section):
    name: str
    deployments: Mapping[str, DescribedDeployment]
    callers: Mapping[str, str] = Field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class KnownPeople:
    """The test set as its owner knows it: labels, and membership of the advantaged group, uint8 of shape (people,)."""

    labels: Bytes
    protected: Bytes = field(repr=False)


@dataclass(frozen=True, eq=False)
class KnownGroups:
    """The groups as their owner knows them: labels, and each column's values with everybody's index among these.

    Columns known by probabilities have these in `likely`, shape (people, values), and an index of -1 for people whose
    value is not known for sure.
    """

    labels: Bytes
    values: Mapping[str, tuple[str, ...]]
    codes: Mapping[str, NDArray[np.intp]] = field(repr=False)
    likely: Mapping[str, Floats] = field(repr=False)

    def cells(self, by: Sequence[str]) -> NDArray[np.intp]:
        """Return everybody's group by some columns; the last column's values vary fastest."""
        places = tuple(self.codes[name] for name in by)
        return np.asarray(np.ravel_multi_index(places, [len(self.values[name]) for name in by]))


def _place(value: str, values: Sequence[str]) -> int:
    """Return a value's index: "other" stands for every unlisted one, "unknown" for none."""
    return values.index(value if value in values else "other" if value else "unknown")


@dataclass(frozen=True)
class Target:
    """A server under test, whose paths are relative to `folder`.

    Its name is the run's or the deployment's, as in certificates. `callers` maps a case's caller to a folder of them.
    """

    folder: Path
    name: str
    deployments: Mapping[str, DescribedDeployment]
    callers: Mapping[str, str]
    certificates: Path

    def credentials(self, caller: str) -> Credentials | None:
        """Return a caller's credentials, or None if the tester has none."""
        folder = self.certificates / self.callers.get(caller, caller)
        return certificates.read(folder) if (folder / "key.pem").is_file() else None

    def developer(self, caller: str) -> str:
        """Return the name that a deployment's policy gives a caller."""
        return self.callers.get(caller, caller).removeprefix("developer-")

    def people(self, deployment: str, by: str = "") -> KnownPeople | None:
        """Read a deployment's test set by a protected column, by default the first; None if the tester has no table."""
        about = self.deployments[deployment]
        if not about.table:
            return None
        column = by or next(iter(about.by), "advantaged")
        return _people(self.folder / about.table, column, about.by.get(column, ("1",)))

    def counted(self, deployment: str) -> KnownGroups | None:
        """Read the groups; None if nobody is counted by group, or the tester has no table."""
        about = self.deployments[deployment]
        if not (about.groups and about.table):
            return None
        with _rows(self.folder / about.table, "labels and the columns of the groups") as rows:
            codes = {
                column: np.array([_place(row[column], values) for row in rows])
                for column, values in about.groups.items()
                if column not in about.probabilities
            }
            likely = {}
            for name, each in about.probabilities.items():
                values = about.groups[name]
                codes[name] = np.array([values.index(row[each.golden]) if row[each.golden] else -1 for row in rows])
                likely[name] = np.array([[float(row[each.columns[value]]) for value in values] for row in rows])
            return KnownGroups(np.array([int(row["label"]) for row in rows], np.uint8), about.groups, codes, likely)

    def rows(self, deployment: str) -> tuple[list[bytes], dict[str, list[str]]] | None:
        """Read a deployment's ids and public columns; None if rows have no ids, or the tester has no table."""
        about = self.deployments[deployment]
        if not (about.ids and about.table):
            return None
        with _rows(self.folder / about.table, "ids and public columns") as rows:
            return ids_of(row[about.ids] for row in rows), {name: [row[name] for row in rows] for name in about.public}

    def released(self, deployment: str) -> Bytes | None:
        """Read the released attributes: codes, shape (people, columns); None if the tester has no table."""
        releases = self.deployments[deployment].releases
        if releases is None or not releases.table:
            return None
        return _released(self.folder / releases.table, tuple((each.name, each.values) for each in releases.columns))


# A run reads each table thousands of times.
@lru_cache(maxsize=64)
def _people(path: Path, column: str, advantaged: tuple[str, ...]) -> KnownPeople:
    with _rows(path, f"the columns label, 0 or 1, and {column}") as rows:
        return KnownPeople(
            _bytes([int(row["label"]) for row in rows]), _bytes([row[column] in advantaged for row in rows])
        )


@lru_cache(maxsize=64)
def _released(path: Path, columns: tuple[tuple[str, tuple[str, ...]], ...]) -> Bytes:
    with _rows(path, "the released columns and values") as rows:
        return _bytes([[values.index(row[name]) for name, values in columns] for row in rows])


def _bytes(numbers: Sequence[object]) -> Bytes:
    found = np.array(numbers, np.uint8)
    found.setflags(write=False)
    return found


@contextmanager
def _rows(path: Path, needed: str) -> Iterator[list[dict[str, str]]]:
    """Read a table; raise ConformanceError with what is needed if it is missing or wrong."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            yield list(csv.DictReader(file))
    except (OSError, KeyError, ValueError, RowsError) as error:
        raise ConformanceError(f"{path}: must be a CSV with {needed}: {error}") from None


def read(path: Path, certs: Path | None = None, addresses: Mapping[str, str] | None = None) -> Target:
    """Read a description; the certificates are by default beside it, and `addresses` replaces those of deployments."""
    try:
        values: dict[str, Any] = toml.loads(read_text(path))
        for name, address in (addresses or {}).items():
            if name not in values.get("deployments", {}):
                raise ConformanceError(f"--address {name}={address}: {path} has no deployment of that name")
            values["deployments"][name]["address"] = address
        found = _File.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ConformanceError(f"{path}: {where}: {first['msg']}") from None
    except toml.TomlError as error:
        raise ConformanceError(f"{path}: not valid TOML: {error}") from None
    if not NAME.fullmatch(found.name):
        raise ConformanceError(f"{path}: name: must be 1 to 63 lower-case letters, digits and hyphens")
    certs = certs or path.parent / "certificates"
    if not certs.is_dir():
        raise ConformanceError(f"{certs}: no folder of certificates")
    return Target(path.parent, found.name, found.deployments, found.callers, certs)
