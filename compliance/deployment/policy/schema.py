"""What a policy says: a section each for service, data, audit, budget, developers, releases and law.

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
from compliance.mechanisms.bounding import Bounding, bounded
from compliance.mechanisms.cauchy import CauchyMechanism
from compliance.mechanisms.recommended import Recommended
from fairwall.errors import NotOneOf, UserError
from fairwall.laws.exposure import REVEAL_MAX, Limit
from fairwall.laws.local import LOCAL_LAWS, split
from fairwall.laws.precision import DECIMALS_MAX
from fairwall.laws.shares import DEFAULT_SHARES, Shares
from fairwall.laws.standings import Promise
from fairwall.rpc.addresses import mistake
from fairwall.rpc.identity import NAME
from fairwall.rpc.quota import Quota
from fairwall.tables.columns import names_of
from fairwall.tables.values import meaning
from fairwall.wire.limits import EPSILON_MIN

DEVELOPERS_LISTED = 5
"""So many developers at most are named on a line."""

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
    # Beside a file that is written stand others, whose names are longer.
    _of_kind(path.with_name(path.name + "." * _SUFFIX_MAX), stat.S_IFREG, "a file")
    return path


def _place(value: object, info: ValidationInfo) -> Place:
    """Read where a ledger or its heads are kept: a file, or a database."""
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
    """Read where people are: a file; or an engine's files, or database, as a text that begins with its kind."""
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
    """Refuse what is of another kind, such as a pipe for which one would wait, and what can never be there."""
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
    """Read one value of a column, or several."""
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, list | tuple) or not given or not all(isinstance(each, str) for each in given):
        raise ValueError("must be a value or a list of values, as text")
    return tuple(given)


def _sides(given: object) -> tuple[str, ...] | dict[str, tuple[str, ...]]:
    """Read the values of one column, or of several by their names."""
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
    """The service: what it is called, where it listens, and where it keeps what it must not lose."""

    name: _Name
    listen: Annotated[str, AfterValidator(_address)]
    credentials: _Folder
    ledger: Annotated[Path | str, PlainValidator(_place)]
    seal: Annotated[Path | str, PlainValidator(_place)]
    telemetry: Annotated[str, AfterValidator(_url)] | None = None


@dataclass(frozen=True)
class Split:
    """A protected column, and its values for both groups; where none are given, the other one of two values."""

    column: str
    advantaged: tuple[str, ...]
    disadvantaged: tuple[str, ...]


class ProbabilitiesSection(_Section):
    """An attribute that nobody holds: for each value the column that has its probability, and who is known for sure.

    ``golden`` is a column that has the value of a simple random sample of the people, and is blank for all others.
    ``threshold`` is there to be refused.
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
    def splits(self) -> tuple[Split, ...]:
        """The protected columns, and who is advantaged by each."""
        if isinstance(self.protected, str):
            assert self.advantaged is not None, "which is checked"
            assert isinstance(self.disadvantaged, tuple), "which is checked"
            return (Split(self.protected, (self.advantaged,), self.disadvantaged),)
        others = self.disadvantaged if isinstance(self.disadvantaged, dict) else {}
        return tuple(Split(column, values, others.get(column, ())) for column, values in self.protected.items())

    @property
    def columns(self) -> tuple[str, ...]:
        """The protected columns."""
        return (self.protected,) if isinstance(self.protected, str) else tuple(self.protected)

    @property
    def attributes(self) -> dict[str, tuple[str, ...]]:
        """What groups are made of, known or by probabilities, and every value of each."""
        return self.groups | {name: tuple(section.columns) for name, section in self.probabilities.items()}

    @property
    def group_columns(self) -> frozenset[str]:
        """The columns that groups are made of."""
        by = self.probabilities.values()
        return frozenset((*self.groups, *(column for each in by for column in (*each.columns.values(), each.golden))))

    @property
    def file(self) -> Path | None:
        """The file that the service reads whole; None where people stay in an engine."""
        return self.source if isinstance(self.source, Path) else None


class TableSection(_Section):
    """A table of predictions about people who stay in an engine: where it is, and which developers may ask about it."""

    source: Annotated[str, PlainValidator(_parquet)] | None = None
    table: str | None = None
    developers: tuple[_Name, ...] = Field(min_length=1)


class SealedSection(_Section):
    """What models are given that developers hand over, and how large and slow they may be."""

    features: tuple[_Column, ...] = Field(min_length=1, max_length=10_000)
    megabytes: int = Field(default=16, strict=True, ge=1, le=1024)
    seconds: float = Field(default=10.0, strict=True, ge=0.1, le=600)


class AuditSection(_Section):
    """What is answered, and how."""

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
    """What the data set may lose in all, whoever asks."""

    epsilon: _Epsilon
    delta: _Delta = 0.0
    rule: Literal["basic", "advanced", "zcdp", "tight"] = "basic"


class DeveloperSection(_Section):
    """What one developer may spend of it. The developers' shares may add up to more than there is; the budget holds.

    ``release`` is what it may spend of the budget of those whose attributes are released. ``calls_a_day`` and
    ``bytes_a_day`` are how much of the service it may use, whatever that costs, and ``answers_a_day`` how many
    answers it may get anew.
    """

    epsilon: _Epsilon
    delta: _Delta = 0.0
    release: Annotated[float, Field(strict=True, ge=0)] = 0.0
    calls_a_day: int = Field(default=Quota.calls, strict=True, ge=1)
    bytes_a_day: int = Field(default=Quota.bytes, strict=True, ge=1)
    answers_a_day: int = Field(default=10_000, strict=True, ge=1)


class ReleaseSection(_Section):
    """Whose attributes are sold sanitised, which, and how; what those people may lose in all, whoever asks."""

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
        """What each column has of epsilon, together 1; LocalPrivacyError for weights that are none."""
        how = self.weights if self.split == "weights" else self.split
        return split(how, [len(values) for values in self.columns.values()], 1.0)


class LawSection(_Section):
    """Which law the signed page answers to; nothing that is served depends on it.

    ``columns`` says which column is what the preset calls race or sex, where that has another name.
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
    release: ReleaseSection | None = None
    tables: dict[Annotated[str, AfterValidator(_data_name)], TableSection] = {}
    sealed: SealedSection | None = None
    law: LawSection | None = None

    @property
    def data_name(self) -> str:
        """What requests call the data set: the deployment's name unless it has its own."""
        return self.data.name or self.deployment.name

    @property
    def release_name(self) -> str:
        """What the ledger calls the people whose attributes are released."""
        return (self.release and self.release.name) or f"{self.data_name}-release"

    @property
    def hidden(self) -> frozenset[str]:
        """The columns by which nobody is told whose the data are."""
        released = () if self.release is None else self.release.columns
        return frozenset((*self.data.columns, *self.data.group_columns, *released))

    @property
    def epsilon_max(self) -> float:
        """The most that one batch may spend."""
        return self.audit.epsilon_max or self.budget.epsilon

    @property
    def shares(self) -> Shares:
        """What is known, and assumed, of how large groups are: public."""
        return Shares(*self.audit.shares, self.data.minimum_group, by_policy=True)

    @property
    def limit(self) -> Limit:
        """What a batch may reveal of a group of the least size."""
        return Limit(self.audit.reveal_max, self.shares)

    @property
    def released(self) -> float:
        """For how much, in epsilon, the audited people's protected attribute is released besides.

        Whether other files hold the same people, only their operator knows.
        """
        release = self.release
        if release is None or release.columns.keys().isdisjoint(self.data.columns):
            return 0.0
        return release.epsilon if self.data.file and release.source.resolve() == self.data.file.resolve() else 0.0

    @property
    def mechanism(self) -> Mechanism:
        """What answers; ValueError for a bounding that it cannot have."""
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
    """What one file says: a deployment, and for each of its data sets a policy.

    Parameters
    ----------
    datasets : by what requests call the data set.
    digest : the SHA-256 of the file.
    is_several : whether each data set has sections of its own below ``datasets``.
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
        """Whether models are taken that developers hand over."""
        return any(policy.sealed is not None for policy in self.datasets.values())

    @property
    def quotas(self) -> dict[str, Quota]:
        """How much each developer may use of the service; who has several data sets, the most that one allows."""
        return {
            name: Quota(max(each.calls_a_day for each in its), max(each.bytes_a_day for each in its))
            for name, its in self._sections().items()
        }

    @property
    def answers_a_day(self) -> dict[str, int]:
        """How many answers each developer may get anew in a day, on all data sets; the most that one allows."""
        return {name: max(each.answers_a_day for each in its) for name, its in self._sections().items()}

    def _sections(self) -> dict[str, list[DeveloperSection]]:
        named: dict[str, list[DeveloperSection]] = {}
        for policy in self.datasets.values():
            for name, each in policy.developers.items():
                named.setdefault(name, []).append(each)
        return named
