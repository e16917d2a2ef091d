"""What the tester knows of the server under test: a small TOML file, and the certificates to call it with."""

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
from fairwall.laws.precision import Precision
from fairwall.rpc.identity import NAME, Credentials
from fairwall.wire.rows import RowsError, ids_of
from sim.conformance import certificates
from sim.conformance.errors import ConformanceError
from sim.conformance.files import read_text


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class ReleasedColumn(_Section):
    """A column that is released: its name, its values in the order of the encodings, its share of epsilon."""

    name: str
    values: tuple[str, ...]
    share: float


class Releases(_Section):
    """What a deployment of compliance releases, as its policy has it: attributes of so many people.

    Columns are in the order of the encodings; `shares` says what each developer may spend. `table` has those people,
    where the tester knows them: a CSV with these columns.
    """

    people: int
    protocol: str
    columns: tuple[ReleasedColumn, ...] = Field(min_length=1)
    shares: Mapping[str, float] = Field(default_factory=dict)
    table: str = ""


class Probabilities(_Section):
    """An attribute that is known by probabilities: the column that has each value's, and that of the golden sample."""

    columns: Mapping[str, str]
    golden: str


class Deployment(_Section):
    """One deployment of a server under test, as its policy has it.

    Compliance has several, which differ in what the cases say: ``mirror`` has other people than ``main`` and is the
    same else, ``little`` has a budget that is soon spent, ``lopsided`` cannot be audited. The developer has ``model``,
    the referee ``game``.

    Of several data sets of one deployment each is described by itself: it is served by the one that it is `of`. Of
    several services of one ledger each is one: the second is served `beside` the first, from its folder.

    It answers at `address`, unless a command starts it, which is given a file (`policy`) and the folder of the
    certificates that it shows (`credentials`). A server may refuse to serve one that is `optional`: then it is not put
    to the checks of it.

    What a policy of compliance says: `people` are in the test set, and `table` has it, where the tester knows it.
    A batch spends from `epsilon_min` to `epsilon_max`, and a mechanism that looks at it reveals `reveal_max` at most.
    `unit` is the smallest charge that can be told apart in what is left. `precision`, `bounding` and `rule` say how
    answers are written down and bounded, and how losses add up. Each batch costs `batch_delta`; `delta` is the
    budget's, and every share's. Each group has at least `minimum_group` people in what a metric looks at: noise counts
    on it. Gaps are by the protected columns `by`, each with the values of its advantaged group, the first where a
    request names none; where it is empty, by the column ``advantaged``, where that is 1. `groups` has the columns that
    people are counted by, and every value of each, `measures` what may be asked of them, `least_share` what share of
    the people a group needs to be compared, and `probabilities` how those are known that nobody holds; `ids` is the
    column of ids, where rows have some, and `public` has further columns that both sides know.

    Number k, from 0, of the developer's models scores 1 / (1 + exp(-(k + 1) x.w)), where w are `weights`. The first one
    is released. A `request` is under way, about so many `models`.
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
        """How many features a person has."""
        return len(self.weights)


class _File(_Section):
    name: str
    deployments: Mapping[str, Deployment]
    callers: Mapping[str, str] = Field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class People:
    """The test set as its owner knows it: labels, and who is advantaged by one column, uint8 of shape (people,)."""

    labels: NDArray[np.uint8]
    protected: NDArray[np.uint8] = field(repr=False)


@dataclass(frozen=True, eq=False)
class Counted:
    """Who is in which group as their owner knows it: labels, and of each column its values and everybody's place.

    Of what is known by probabilities it has these, shape (people, values), and the places are -1 of whom it is not
    known for sure.
    """

    labels: NDArray[np.uint8]
    values: Mapping[str, tuple[str, ...]]
    codes: Mapping[str, NDArray[np.intp]] = field(repr=False)
    likely: Mapping[str, NDArray[np.float64]] = field(repr=False)

    def cells(self, by: Sequence[str]) -> NDArray[np.intp]:
        """Return everybody's group by some columns, the last one's values the fastest."""
        places = tuple(self.codes[name] for name in by)
        return np.asarray(np.ravel_multi_index(places, [len(self.values[name]) for name in by]))


def _place(value: str, values: Sequence[str]) -> int:
    """Find a value among those that are listed: "other" stands for every other one, "unknown" for none."""
    return values.index(value if value in values else "other" if value else "unknown")


@dataclass(frozen=True)
class Target:
    """A server under test.

    Paths in its description start at `folder`. Its name is the run's or the deployment's, as certificates have it.
    `callers` says whose credentials a case's caller has: a folder of the certificates.
    """

    folder: Path
    name: str
    deployments: Mapping[str, Deployment]
    callers: Mapping[str, str]
    certificates: Path

    def credentials(self, caller: str) -> Credentials | None:
        """Return a caller's credentials; None where the tester was given none."""
        folder = self.certificates / self.callers.get(caller, caller)
        return certificates.read(folder) if (folder / "key.pem").is_file() else None

    def developer(self, caller: str) -> str:
        """Return the name that a deployment's policy gives a caller."""
        return self.callers.get(caller, caller).removeprefix("developer-")

    def people(self, deployment: str, by: str = "") -> People | None:
        """Read a deployment's test set by a protected column, or the first; None where the tester does not know it."""
        about = self.deployments[deployment]
        if not about.table:
            return None
        column = by or next(iter(about.by), "advantaged")
        return _people(self.folder / about.table, column, about.by.get(column, ("1",)))

    def counted(self, deployment: str) -> Counted | None:
        """Read who is in which group; None where nobody is counted by group, or the tester does not know the table."""
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
            return Counted(np.array([int(row["label"]) for row in rows], np.uint8), about.groups, codes, likely)

    def rows(self, deployment: str) -> tuple[list[bytes], dict[str, list[str]]] | None:
        """Read a deployment's ids, and its public columns; None where rows have none, or the tester does not know."""
        about = self.deployments[deployment]
        if not (about.ids and about.table):
            return None
        with _rows(self.folder / about.table, "ids and public columns") as rows:
            return ids_of(row[about.ids] for row in rows), {name: [row[name] for row in rows] for name in about.public}

    def released(self, deployment: str) -> NDArray[np.uint8] | None:
        """Read those whose attributes a deployment releases: codes, shape (people, columns).

        None where the tester does not know them.
        """
        releases = self.deployments[deployment].releases
        if releases is None or not releases.table:
            return None
        return _released(self.folder / releases.table, tuple((each.name, each.values) for each in releases.columns))


# A run looks at each table thousands of times.
@lru_cache(maxsize=64)
def _people(path: Path, column: str, advantaged: tuple[str, ...]) -> People:
    with _rows(path, f"the columns label, 0 or 1, and {column}") as rows:
        return People(_bytes([int(row["label"]) for row in rows]), _bytes([row[column] in advantaged for row in rows]))


@lru_cache(maxsize=64)
def _released(path: Path, columns: tuple[tuple[str, tuple[str, ...]], ...]) -> NDArray[np.uint8]:
    with _rows(path, "the released columns and values") as rows:
        return _bytes([[values.index(row[name]) for name, values in columns] for row in rows])


def _bytes(numbers: Sequence[object]) -> NDArray[np.uint8]:
    found = np.array(numbers, np.uint8)
    found.setflags(write=False)
    return found


@contextmanager
def _rows(path: Path, needed: str) -> Iterator[list[dict[str, str]]]:
    """Read a table; what is missing there, or not as needed, is said of it."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            yield list(csv.DictReader(file))
    except (OSError, KeyError, ValueError, RowsError) as error:
        raise ConformanceError(f"{path}: must be a CSV with {needed}: {error}") from None


def read(path: Path, certs: Path | None = None, addresses: Mapping[str, str] | None = None) -> Target:
    """Read a description.

    The certificates are by default in ``certificates`` beside it. `addresses` says where deployments answer, in place
    of what the description says.
    """
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
