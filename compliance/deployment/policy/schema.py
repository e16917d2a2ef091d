"""The schema of a policy: one model for each section of its file.

A typo in a key is an error that names the key.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, ValidationInfo

from compliance.answers.exposure import limited
from compliance.deployment.policy.law import Metric, Preset, PresetError
from compliance.deployment.policy.law import read as read_preset
from compliance.ledger import postgres
from compliance.ledger.entries import UNIT_EPSILON, LedgerError
from compliance.ledger.place import SCHEME, Place, is_database
from compliance.mechanisms import MECHANISMS, Mechanism, find_mechanism
from compliance.mechanisms.noise_on_gaps import Bounding, CauchyMechanism, bounded
from compliance.mechanisms.recommended import Recommended
from fairwall.errors import NotOneOf, UserError
from fairwall.laws.choice.prediction import Promise
from fairwall.laws.local import LOCAL_LAWS, split
from fairwall.laws.metrics.answer_precision import DECIMALS_MAX
from fairwall.laws.metrics.group_size_range import DEFAULT_SHARES, Shares
from fairwall.laws.privacy.exposure import REVEAL_MAX, Limit
from fairwall.rpc.addresses import mistake
from fairwall.rpc.fair_use import Quota
from fairwall.rpc.identity import NAME
from fairwall.tables.columns import names_of
from fairwall.tables.values import meaning
from fairwall.wire.numbers import EPSILON_MIN

DEVELOPERS_LISTED = 5
"""Most developers named on a line."""

_DATA_NAME = re.compile(r"[!-~]{1,64}")
_SUFFIX_MAX = len(".service")


class PolicyError(UserError):
    """A policy that cannot be served. Its text is one line that names the key and what would be right."""


def _beside(path: Path, info: ValidationInfo) -> Path:
    assert isinstance(info.context, Path), "the policy file's folder"
    return info.context / path


def _folder(path: Path) -> Path:
    return _of_kind(path, stat.S_IFDIR, "a folder")


def _file(path: Path) -> Path:
    _of_kind(path, stat.S_IFREG, "a file")
    # Files with longer names are written beside this one.
    _of_kind(path.with_name(path.name + "." * _SUFFIX_MAX), stat.S_IFREG, "a file")
    return path


def _place(value: object, info: ValidationInfo) -> Place:
    """Return where a ledger or its heads are kept: a file, or a database."""
    if isinstance(value, str) and is_database(value):
        try:
            postgres.check(value)
        except LedgerError as error:
            raise ValueError(str(error)) from None
        return value
    if not isinstance(value, str | Path):
        raise ValueError(f"must be a file, or {SCHEME}user@host/database")
    return _file(_beside(Path(value), info))


def _source(value: object, info: ValidationInfo) -> Path | str:
    """Return where people are: a file; or an engine's files or database, as text that begins with its kind."""
    if isinstance(value, str) and is_database(value):
        return _place(value, info)
    if isinstance(value, str) and (kind := value.partition(":")[0]) in ("duckdb", "parquet"):
        assert isinstance(info.context, Path), "the policy file's folder"
        return f"{kind}:{info.context.resolve() / value.removeprefix(kind + ':')}"
    if not isinstance(value, str | Path):
        raise ValueError(
            f"must be a file, parquet:people/*.parquet, duckdb:people.duckdb, or {SCHEME}user@host/database"
        )
    return _file(_beside(Path(value), info))


def _parquet(value: object, info: ValidationInfo) -> str:
    if not isinstance(value, str) or not value.startswith("parquet:"):
        raise ValueError("must be parquet:folder/*.parquet; a table of the data's own database is its key table")
    return str(_source(value, info))


def _preset(value: object, info: ValidationInfo) -> Preset:
    assert isinstance(info.context, Path), "the policy file's folder"
    if not isinstance(value, str):
        raise PresetError("must be the name of a preset, or a file")
    return read_preset(value, info.context)


def _of_kind(path: Path, kind: int, name: str) -> Path:
    """Raise ValueError for another kind of file, such as a pipe that would block, and for an impossible path."""
    try:
        found = stat.S_IFMT(path.stat().st_mode)
    except (FileNotFoundError, PermissionError):
        return path
    except OSError as error:
        raise ValueError(f"must be a path: {error.strerror}") from None
    if found != kind:
        raise ValueError(f"must be {name}")
    return path


def _name(value: str) -> str:
    if not NAME.fullmatch(value):
        raise ValueError("must be 1 to 63 lower-case letters, digits and hyphens")
    return value


def _address(value: str) -> str:
    if wrong := mistake(value):
        raise ValueError(f"must be host:port{wrong}")
    return value


def _url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or not parts.port:
        raise ValueError("must be http://host:port or https://host:port")
    return value


def _data_name(value: str) -> str:
    if not _DATA_NAME.fullmatch(value):
        raise ValueError("must be 1 to 64 printable ASCII characters without spaces")
    return value


def _mechanism(value: str) -> str:
    if value not in MECHANISMS or MECHANISMS[value].guarantee == "none":
        raise NotOneOf([name for name, mechanism in MECHANISMS.items() if mechanism.guarantee != "none"])
    return value


def _protocol(value: str) -> str:
    if value not in LOCAL_LAWS:
        raise NotOneOf(LOCAL_LAWS)
    return value


def _domain(values: tuple[str, ...]) -> tuple[str, ...]:
    if not 2 <= len(set(map(meaning, values))) == len(values) <= 256:
        raise ValueError("must be 2 to 256 different values")
    return values


def _values(given: object) -> tuple[str, ...]:
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, list | tuple) or not given or not all(isinstance(each, str) for each in given):
        raise ValueError("must be a value or a list of values, as text")
    return tuple(given)


def _sides(given: object) -> tuple[str, ...] | dict[str, tuple[str, ...]]:
    """Return the values of one column, or of several by column name."""
    return {name: _values(each) for name, each in given.items()} if isinstance(given, dict) else _values(given)


_Column = Annotated[str, Field(max_length=200)]


_Folder = Annotated[Path, AfterValidator(_beside), AfterValidator(_folder)]


_File = Annotated[Path, AfterValidator(_beside), AfterValidator(_file)]


_Name = Annotated[str, AfterValidator(_name)]


_Epsilon = Annotated[float, Field(strict=True, gt=0)]


_LeastEpsilon = Annotated[float, Field(strict=True, ge=EPSILON_MIN)]


_Delta = Annotated[float, Field(strict=True, ge=0, lt=1)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class DeploymentSection(_Section):
    """The service: its name, its address, and the places of its credentials, ledger and seal."""

    name: _Name
    listen: Annotated[str, AfterValidator(_address)]
    credentials: _Folder
    ledger: Annotated[Path | str, PlainValidator(_place)]
    seal: Annotated[Path | str, PlainValidator(_place)]
    telemetry: Annotated[str, AfterValidator(_url)] | None = None


@dataclass(frozen=True)
class GroupSplit:
    """A protected column, and both groups' values; an empty group is the other of two values."""

    column: str
    advantaged: tuple[str, ...]
    disadvantaged: tuple[str, ...]


class ProbabilitiesSection(_Section):
    """An attribute known by probabilities: for each value a column of its probability, and a sample known for sure.

    ``golden`` is a column with the value of a simple random sample of the people, blank for all others. ``threshold``
    exists only to be refused.
    """

    columns: dict[str, _Column] = Field(min_length=2, max_length=32)
    golden: str
    threshold: float | None = None


class DataSection(_Section):
    """The test set that every developer's predictions are about, and its columns' roles."""

    name: Annotated[str, AfterValidator(_data_name)] | None = None
    source: Annotated[Path | str, PlainValidator(_source)]
    table: str | None = None
    protected: str | Annotated[dict[_Column, Annotated[tuple[str, ...], Field(min_length=1)]], Field(min_length=1)]
    advantaged: str | None = None
    disadvantaged: Annotated[tuple[str, ...] | dict[str, tuple[str, ...]], BeforeValidator(_sides)] = ()
    label: str
    positive: str
    negative: Annotated[tuple[str, ...], BeforeValidator(_values)] = ()
    minimum_group: int = Field(strict=True, ge=1)
    id: str | None = None
    public: tuple[str, ...] = ()
    missing: Literal["refuse", "drop"] = "refuse"
    missing_values: tuple[str, ...] = ()
    impute: dict[str, str] = {}
    groups: dict[str, Annotated[tuple[str, ...], AfterValidator(_domain)]] = {}
    probabilities: dict[str, ProbabilitiesSection] = Field(default={}, max_length=1)
    least_share: float = Field(default=0.02, strict=True, ge=0, lt=1)

    @property
    def splits(self) -> tuple[GroupSplit, ...]:
        """The protected columns, each with its advantaged values."""
        if isinstance(self.protected, str):
            assert self.advantaged is not None, "which is checked"
            assert isinstance(self.disadvantaged, tuple), "which is checked"
            return (GroupSplit(self.protected, (self.advantaged,), self.disadvantaged),)
        others = self.disadvantaged if isinstance(self.disadvantaged, dict) else {}
        return tuple(GroupSplit(column, values, others.get(column, ())) for column, values in self.protected.items())

    @property
    def columns(self) -> tuple[str, ...]:
        """The protected columns."""
        return (self.protected,) if isinstance(self.protected, str) else tuple(self.protected)

    @property
    def attributes(self) -> dict[str, tuple[str, ...]]:
        """The attributes that define groups, known or by probabilities, and every value of each."""
        return self.groups | {name: tuple(section.columns) for name, section in self.probabilities.items()}

    @property
    def group_columns(self) -> frozenset[str]:
        """The columns that define groups."""
        by = self.probabilities.values()
        return frozenset((*self.groups, *(column for each in by for column in (*each.columns.values(), each.golden))))

    @property
    def file(self) -> Path | None:
        """The file that the service reads whole; None where people stay in an engine."""
        return self.source if isinstance(self.source, Path) else None


class PolicyTable(_Section):
    """A table of predictions about people who stay in an engine: its place, and the developers who may use it."""

    source: Annotated[str, PlainValidator(_parquet)] | None = None
    table: str | None = None
    developers: tuple[_Name, ...] = Field(min_length=1)


class SealedSection(_Section):
    """Limits of uploaded models, and the features they get."""

    features: tuple[_Column, ...] = Field(min_length=1, max_length=10_000)
    megabytes: int = Field(default=16, strict=True, ge=1, le=1024)
    seconds: float = Field(default=10.0, strict=True, ge=0.1, le=600)


class AuditSection(_Section):
    """The metrics that are answered, the mechanism, and the limits of a batch."""

    metrics: tuple[Metric, ...] = Field(min_length=1)
    mechanism: Annotated[str, AfterValidator(_mechanism)]
    queries_max: int = Field(strict=True, ge=1, le=100_000)
    epsilon_min: _LeastEpsilon = UNIT_EPSILON
    epsilon_max: _Epsilon | None = None
    delta: _Delta = 0.0
    bounding: Bounding = "none"
    shares: tuple[float, float] = (DEFAULT_SHARES.low, DEFAULT_SHARES.high)
    reveal_max: float = Field(default=REVEAL_MAX, strict=True, ge=0.5, le=1)
    reveal_total: float = Field(default=1.0, strict=True, ge=0.5, le=1)
    promise: Promise = "likely"
    precision: Literal["float64", "float32"] | Annotated[int, Field(strict=True, ge=0, le=DECIMALS_MAX)] = "float64"
    answer_seconds: float = Field(default=0.0, strict=True, ge=0, le=60)
    committed: bool = Field(default=False, strict=True)


class BudgetSection(_Section):
    """The budget of the data set, for all developers together."""

    epsilon: _Epsilon
    delta: _Delta = 0.0
    rule: Literal["basic", "advanced", "zcdp", "tight"] = "basic"


class DeveloperSection(_Section):
    """One developer's share of the budget; shares may sum to more than the budget, which holds all the same.

    ``release`` is the share of the budget of those whose attributes are released. ``calls_a_day`` and ``bytes_a_day``
    limit the use of the service, whatever it costs, and ``answers_a_day`` the number of new answers.
    """

    epsilon: _Epsilon
    delta: _Delta = 0.0
    release: Annotated[float, Field(strict=True, ge=0)] = 0.0
    calls_a_day: int = Field(default=Quota.calls, strict=True, ge=1)
    bytes_a_day: int = Field(default=Quota.bytes, strict=True, ge=1)
    answers_a_day: int = Field(default=10_000, strict=True, ge=1)


class PolicyRelease(_Section):
    """The people and attributes released sanitised, the protocol, and the budget for all developers together."""

    name: Annotated[str, AfterValidator(_data_name)] | None = None
    source: _File
    columns: dict[str, Annotated[tuple[str, ...], AfterValidator(_domain)]] = Field(min_length=1)
    protocol: Annotated[str, AfterValidator(_protocol)]
    split: Literal["uniform", "k-based", "weights"] = "uniform"
    weights: tuple[float, ...] = ()
    epsilon_min: _LeastEpsilon = UNIT_EPSILON
    epsilon: _Epsilon

    @property
    def shares(self) -> tuple[float, ...]:
        """The columns' shares of epsilon, which sum to 1; LocalPrivacyError for invalid weights."""
        how = self.weights if self.split == "weights" else self.split
        return split(how, [len(values) for values in self.columns.values()], 1.0)


class LawSection(_Section):
    """The law that the signed page answers to; nothing that is served depends on it.

    ``columns`` maps the preset's names, such as race or sex, to columns that have another name.
    """

    preset: Annotated[Preset, PlainValidator(_preset)]
    columns: dict[str, str] = {}

    def by(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the columns that stand for attributes of the preset."""
        return tuple(self.columns.get(name, name) for name in names)


class Policy(_Section):
    """A validated policy for one data set; relative paths in the file start from its folder."""

    deployment: DeploymentSection
    data: DataSection
    audit: AuditSection
    budget: BudgetSection
    developers: dict[_Name, DeveloperSection] = Field(min_length=1)
    release: PolicyRelease | None = None
    tables: dict[Annotated[str, AfterValidator(_data_name)], PolicyTable] = {}
    sealed: SealedSection | None = None
    law: LawSection | None = None

    @property
    def data_name(self) -> str:
        """The data set's name in requests: its own, or the deployment's."""
        return self.data.name or self.deployment.name

    @property
    def release_name(self) -> str:
        """The name in the ledger of the people whose attributes are released."""
        return (self.release and self.release.name) or f"{self.data_name}-release"

    @property
    def hidden(self) -> frozenset[str]:
        """The columns that nobody may use to find out whose the data are: protected, group and released ones."""
        released = () if self.release is None else self.release.columns
        return frozenset((*self.data.columns, *self.data.group_columns, *released))

    @property
    def epsilon_max(self) -> float:
        """Most epsilon of one batch."""
        return self.audit.epsilon_max or self.budget.epsilon

    @property
    def shares(self) -> Shares:
        """Known and assumed sizes of groups: public."""
        return Shares(*self.audit.shares, self.data.minimum_group, by_policy=True)

    @property
    def limit(self) -> Limit:
        """Limit on what a batch may reveal about a group of the least size."""
        return Limit(self.audit.reveal_max, self.shares)

    @property
    def released(self) -> float:
        """Epsilon at which the audited people's protected attribute is also released.

        Only the operator knows whether other files hold the same people.
        """
        release = self.release
        if release is None or release.columns.keys().isdisjoint(self.data.columns):
            return 0.0
        return release.epsilon if self.data.file and release.source.resolve() == self.data.file.resolve() else 0.0

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism that answers; ValueError for a bounding that it cannot have."""
        mechanism = find_mechanism(self.audit.mechanism)
        if isinstance(mechanism, CauchyMechanism | Recommended):
            mechanism = replace(mechanism, shares=self.shares)
        if isinstance(mechanism, Recommended):
            mechanism = replace(mechanism, promise=self.audit.promise)
        return bounded(limited(mechanism, self.limit), self.audit.bounding)

    @property
    def summary(self) -> str:
        """One line about what is served; nothing in it was computed from the data."""
        release = self.release
        sells = "" if release is None else f"; releases {', '.join(release.columns)} by {release.protocol}"
        return (
            f"{self.data_name}: metrics {', '.join(self.audit.metrics)}; mechanism {self.audit.mechanism}; "
            f"epsilon {self.budget.epsilon:,g}; developers {names_of(list(self.developers), DEVELOPERS_LISTED)}{sells}"
        )


@dataclass(frozen=True)
class Policies:
    """The content of one file: a deployment, and a policy for each of its data sets.

    `datasets`: by the data set's name in requests. `digest`: SHA-256 of the file. `is_several`: whether each data set
    has its own sections below ``datasets``.
    """

    deployment: DeploymentSection
    datasets: Mapping[str, Policy]
    digest: bytes
    is_several: bool

    @property
    def releases(self) -> bool:
        """Whether attributes of any data set are released."""
        return any(policy.release is not None for policy in self.datasets.values())

    @property
    def scores(self) -> bool:
        """Whether any data set takes uploaded models."""
        return any(policy.sealed is not None for policy in self.datasets.values())

    @property
    def quotas(self) -> dict[str, Quota]:
        """Each developer's limits on calls and bytes: with several data sets, the largest of each."""
        return {
            name: Quota(max(each.calls_a_day for each in its), max(each.bytes_a_day for each in its))
            for name, its in self._sections().items()
        }

    @property
    def answers_a_day(self) -> dict[str, int]:
        """Most new answers a day by developer, on all data sets together: the largest limit of any data set."""
        return {name: max(each.answers_a_day for each in its) for name, its in self._sections().items()}

    def _sections(self) -> dict[str, list[DeveloperSection]]:
        named: dict[str, list[DeveloperSection]] = {}
        for policy in self.datasets.values():
            for name, each in policy.developers.items():
                named.setdefault(name, []).append(each)
        return named
