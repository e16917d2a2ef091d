"""What any game deals: an id, compliance's cards, and a seed of its own for each party."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fairwall.errors import UserError
from fairwall.tables.people import LeftOut
from sim.scenarios.scenario import Scenario

WRITTEN_DOWN = b"fairwall trial"
"""What stands in place of a run's secret where the seed alone decides: everybody can recompute every draw."""


class DealError(UserError):
    """A deal that the table cannot give. Its text is one line that names the key and what would be right."""


@dataclass(frozen=True)
class SensitiveColumn:
    """A column that is released sanitised: its name and place in the file, its domain's size, its share of epsilon."""

    name: str
    place: int
    domain: int
    share: float
    protected: bool


@dataclass(frozen=True)
class QueryCards:
    """How many queries may be asked about the people trained on, by which mechanism they are answered, at what cost."""

    queries: int
    mechanism: str
    epsilon: float


@dataclass(frozen=True, eq=False)
class ReleaseCards:
    """What compliance releases, and how.

    Attributes
    ----------
    sizes : the domains' sizes of the columns that are not sensitive.
    epsilon : what the release costs; 0 where all is for queries.
    budget : what it and the queries may cost together.
    values : (people to train on, columns), the columns as they are.
    tested : (n, columns), those of the test set.
    """

    protocol: str
    columns: tuple[SensitiveColumn, ...]
    sizes: tuple[int, ...]
    epsilon: float
    budget: float
    values: NDArray[np.uint8] = field(repr=False)
    tested: NDArray[np.uint8] = field(repr=False)
    queried: QueryCards | None = None

    @property
    def protected(self) -> NDArray[np.uint8]:
        """Who is advantaged of the people to train on: (people,)."""
        (place,) = (place for place, column in enumerate(self.columns) if column.protected)
        return self.values[:, place]


@dataclass(frozen=True, eq=False)
class StudyCards:
    """A study, and what of it is released.

    Attributes
    ----------
    cells, answers : (people,), each person's cell and secret answer.
    width : how many cells there are.
    records : whether the records are released, not counts.
    epsilon : what a release costs.
    """

    cells: NDArray[np.float64] = field(repr=False)
    answers: NDArray[np.uint8] = field(repr=False)
    width: int
    records: bool
    epsilon: float


@dataclass(frozen=True)
class StatisticsCards:
    """What may be told of the people whose protected attributes are dealt: the budget, for one flip of A."""

    epsilon: float
    delta: float


@dataclass(frozen=True, eq=False)
class GroupCards:
    """By what people are counted.

    Attributes
    ----------
    names, sizes : (columns,), each column's name and how many values it may have.
    codes : (columns, people), everybody's values by number.
    epsilon : what all counts may cost together.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    codes: NDArray[np.uint8] = field(repr=False)
    epsilon: float


@dataclass(frozen=True, eq=False)
class ComplianceCards:
    """Labels and protected attributes of the test set, both of shape (n,), and the seed of the noise.

    And its features, shape (n, d), where it is hidden from the developer; and what is to be released, if anything. A
    study is dealt alone, without a test set, and so are groups; where sums by group are told, the attributes are of
    those who are trained on, and there are no labels. ``sealed`` is the key of the models that the developer committed
    itself to, where it did, and ``curator`` are the fields of the message ``CuratorCards``: how it is to cheat.
    """

    labels: NDArray[np.uint8]
    protected: NDArray[np.uint8] = field(repr=False)
    seed: bytes = field(repr=False)
    features: NDArray[np.float64] | None = None
    release: ReleaseCards | None = None
    study: StudyCards | None = None
    statistics: StatisticsCards | None = None
    groups: GroupCards | None = None
    sealed: bytes = b""
    curator: Mapping[str, Any] | None = None

    @property
    def tested(self) -> dict[str, NDArray[Any]]:
        """What the cards of a test set have, by name."""
        arrays = {"labels": self.labels, "protected": self.protected, "features": self.features}
        return {name: array for name, array in arrays.items() if array is not None}


class Deal(Protocol):
    """One trial's cards, whatever the game. ``compliance`` is None where compliance is not dealt in."""

    @property
    def deal_id(self) -> str:
        """Names the trial to every party."""

    @property
    def scenario(self) -> Scenario:
        """The cell's."""

    @property
    def compliance(self) -> ComplianceCards | None:
        """Compliance's cards."""

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """The rows of the table that are in no deal, by reason."""


def party_seed(secret: bytes, seed: int, party: str) -> bytes:
    """Derive a party's own seed of a trial.

    Parameters
    ----------
    secret : bytes
        The run's: 32 random bytes, or ``WRITTEN_DOWN``, with which games repeat from their seed alone and keep no
        secret from a party that tries all seeds.
    seed : the trial's: the scenario's seed and the trial's number.

    Returns
    -------
    bytes
        32 bytes. From one party's no other's can be told without the secret (HMAC-SHA-256, twice).
    """
    trial = hmac.digest(secret, str(seed).encode(), hashlib.sha256)
    return hmac.digest(trial, party.encode(), hashlib.sha256)
