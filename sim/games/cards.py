"""Cards that games have in common: the deal's id, compliance's cards, and one seed per party."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from numpy.typing import NDArray

from fairwall.arrays import Bytes, Floats
from fairwall.errors import UserError
from fairwall.tables.people import LeftOut
from sim.scenarios.scenario import Scenario

WRITTEN_DOWN = b"fairwall trial"
"""The constant used in place of a run's secret where the seed alone decides: everybody can recompute every draw."""


class DealError(UserError):
    """A deal that the table's data cannot give. The text is one line that names the key and a value that would work."""


@dataclass(frozen=True)
class SensitiveColumn:
    """A column released sanitised: its name, index in the file, number of values, and fraction of epsilon."""

    name: str
    place: int
    domain: int
    share: float
    protected: bool


@dataclass(frozen=True)
class QueryCards:
    """Limits on queries about the people trained on: their number, their mechanism and the epsilon of all together."""

    queries: int
    mechanism: str
    epsilon: float


@dataclass(frozen=True, eq=False)
class ReleaseCards:
    """Compliance's cards for releasing sanitised sensitive columns.

    Attributes
    ----------
    sizes : number of values of each column that is not sensitive.
    epsilon : cost of the release; 0 where the whole budget is for queries.
    budget : most epsilon of release and queries together.
    values : (people to train on, columns), the true columns.
    tested : (n, columns), the true columns of the test set.
    """

    protocol: str
    columns: tuple[SensitiveColumn, ...]
    sizes: tuple[int, ...]
    epsilon: float
    budget: float
    values: Bytes = field(repr=False)
    tested: Bytes = field(repr=False)
    queried: QueryCards | None = None

    @property
    def protected(self) -> Bytes:
        """Whether each person to train on is advantaged, 0 or 1: (people,)."""
        (place,) = (place for place, column in enumerate(self.columns) if column.protected)
        return self.values[:, place]


@dataclass(frozen=True, eq=False)
class StudyCards:
    """Compliance's cards for a study: each person's cell and secret answer, (people,); `width` is the number of cells.

    `records`: whether records are released instead of counts. `epsilon` is the cost of one release.
    """

    cells: Floats = field(repr=False)
    answers: Bytes = field(repr=False)
    width: int
    records: bool
    epsilon: float


@dataclass(frozen=True)
class StatisticsCards:
    """Budget for statistics about the people whose attributes are dealt; neighbours differ in one flip of A."""

    epsilon: float
    delta: float


@dataclass(frozen=True, eq=False)
class GroupCards:
    """Compliance's cards for counts by group; `codes` are (columns, people), `epsilon` covers all counts together."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    codes: Bytes = field(repr=False)
    epsilon: float


@dataclass(frozen=True, eq=False)
class ComplianceCards:
    """Labels and protected attributes of the test set, both of shape (n,), and the seed of the noise.

    `features`, (n, d), are set where the test set is hidden from the developer. A study and groups are dealt without a
    test set. With `statistics`, the attributes are those of the people trained on, and there are no labels. `sealed` is
    the key of the models that the developer committed to, or empty; `curator` holds the fields of the message
    `CuratorCards`, which say how compliance is to cheat.
    """

    labels: Bytes
    protected: Bytes = field(repr=False)
    seed: bytes = field(repr=False)
    features: Floats | None = None
    release: ReleaseCards | None = None
    study: StudyCards | None = None
    statistics: StatisticsCards | None = None
    groups: GroupCards | None = None
    sealed: bytes = b""
    curator: Mapping[str, Any] | None = None

    @property
    def tested(self) -> dict[str, NDArray[Any]]:
        """The arrays of the test set, by name."""
        arrays = {"labels": self.labels, "protected": self.protected, "features": self.features}
        return {name: array for name, array in arrays.items() if array is not None}


class Deal(Protocol):
    """One trial's cards in any game. `compliance` is None in a game without compliance."""

    @property
    def deal_id(self) -> str:
        """Id that names the trial to every party."""

    @property
    def scenario(self) -> Scenario:
        """The scenario of the trial's cell."""

    @property
    def compliance(self) -> ComplianceCards | None:
        """Compliance's cards."""

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """The table's rows that are in no deal, counted by reason."""


def party_seed(secret: bytes, seed: int, party: str) -> bytes:
    """Return a party's seed of a trial: 32 bytes.

    HMAC-SHA-256, twice: without the secret, one party's seed reveals nothing about another's. `secret` is the run's 32
    random bytes, or `WRITTEN_DOWN`, with which games repeat from their seed alone and keep no secret from a party that
    tries all seeds. `seed` is the scenario's seed plus the trial's number.
    """
    trial = hmac.digest(secret, str(seed).encode(), hashlib.sha256)
    return hmac.digest(trial, party.encode(), hashlib.sha256)
