"""A deployment's policy: one TOML file that says what is audited, how, at what price, and who may ask.

A typo in a key is an error that names the key. Whatever has to look at protected attributes is checked when the data
load, before anybody is admitted.
"""

from __future__ import annotations

import difflib
import hashlib
import hmac
import logging
import math
import re
import stat
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, ValidationInfo

from compliance.answers.exposure import limited
from compliance.answers.groups import GROUPS_MAX
from compliance.answers.releases import Column
from compliance.ledger.accountant import Budget, Rule
from compliance.ledger.entries import UNIT_EPSILON
from compliance.mechanisms import MECHANISMS, Mechanism, find_mechanism
from compliance.mechanisms.bounding import Bounding, bounded
from compliance.mechanisms.cauchy import CauchyMechanism
from compliance.mechanisms.mechanism import candidates
from compliance.mechanisms.recommended import Recommended
from compliance.records.groups import NO_LABEL, OTHER, UNKNOWN, Attribute, Grouped
from compliance.records.people import Records, RecordsError
from compliance.records.rows import Ids, Rows, identified
from compliance.records.same_people import Traits, traits_of
from fairwall import toml
from fairwall.errors import UserError
from fairwall.files import require_end
from fairwall.laws.exposure import REVEAL_MAX, Limit
from fairwall.laws.local import LOCAL_LAWS, LocalPrivacyError, split
from fairwall.laws.metric import METRICS
from fairwall.laws.precision import DECIMALS_MAX
from fairwall.laws.shares import DEFAULT_SHARES, Shares
from fairwall.rpc.identity import NAME
from fairwall.rpc.quota import Quota
from fairwall.tables import columns as table_columns
from fairwall.tables.errors import DataError
from fairwall.tables.people import missing, select
from fairwall.tables.reading import header
from fairwall.tables.reading import read as read_table
from fairwall.tables.roles import Roles
from fairwall.wire.limits import EPSILON_MIN
from fairwall.wire.rows import RowsError

if TYPE_CHECKING:
    import pyarrow as pa

LOG = logging.getLogger(__name__)

_ADDRESS = re.compile(r".+:\d{1,5}")
_PORT_MAX = 65_535
_DATA_NAME = re.compile(r"[!-~]{1,64}")
_RELEASE_BYTES_MAX = 64 << 20
"""The ledger keeps each release for good."""


_TEXT_MAX, _SHOWN_MAX = 4096, 200
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
    if not _ADDRESS.fullmatch(value) or int(value.rpartition(":")[2]) > _PORT_MAX:
        raise ValueError("must be host:port")
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


def _metric(value: str) -> str:
    if value not in METRICS:
        raise ValueError(f"must be among {', '.join(METRICS)}")
    return value


def _mechanism(value: str) -> str:
    protecting = [name for name, mechanism in MECHANISMS.items() if mechanism.guarantee != "none"]
    if value not in protecting:
        raise ValueError(f"must be one of {', '.join(protecting)}")
    return value


def _protocol(value: str) -> str:
    if value not in LOCAL_LAWS:
        raise ValueError(f"must be one of {', '.join(LOCAL_LAWS)}")
    return value


def _domain(values: tuple[str, ...]) -> tuple[str, ...]:
    if not 2 <= len(set(values)) == len(values) <= 256:
        raise ValueError("must be 2 to 256 different values")
    return values


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
    ledger: _File
    seal: _File
    telemetry: Annotated[str, AfterValidator(_url)] | None = None


class DataSection(_Section):
    """The test set that every developer's predictions are about, and its columns' roles."""

    name: Annotated[str, AfterValidator(_data_name)] | None = None
    source: _File
    protected: str
    advantaged: str
    disadvantaged: str | None = None
    label: str
    positive: str
    minimum_group: int = Field(strict=True, ge=1)
    id: str | None = None
    public: tuple[str, ...] = ()
    missing: Literal["refuse", "drop"] = "refuse"
    impute: dict[str, str] = {}
    groups: dict[str, Annotated[tuple[str, ...], AfterValidator(_domain)]] = {}
    least_share: float = Field(default=0.02, strict=True, ge=0, lt=1)


class AuditSection(_Section):
    """What is answered, and how."""

    metrics: tuple[Annotated[str, AfterValidator(_metric)], ...] = Field(min_length=1)
    mechanism: Annotated[str, AfterValidator(_mechanism)]
    queries_max: int = Field(strict=True, ge=1, le=100_000)
    epsilon_min: _LeastEpsilon = UNIT_EPSILON
    epsilon_max: _Epsilon | None = None
    delta: _Delta = 0.0
    bounding: Bounding = "none"
    shares: tuple[float, float] = (DEFAULT_SHARES.low, DEFAULT_SHARES.high)
    reveal_max: float = Field(default=REVEAL_MAX, strict=True, ge=0.5, le=1)
    precision: Literal["float64", "float32"] | Annotated[int, Field(strict=True, ge=0, le=DECIMALS_MAX)] = "float64"
    answer_seconds: float = Field(default=0.0, strict=True, ge=0, le=60)


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


class Policy(_Section):
    """A validated policy for one data set; relative paths in the file start from its folder."""

    deployment: DeploymentSection
    data: DataSection
    audit: AuditSection
    budget: BudgetSection
    developers: dict[_Name, DeveloperSection] = Field(min_length=1)
    release: ReleaseSection | None = None

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
        return frozenset((self.data.protected, *self.data.groups, *released))

    @property
    def epsilon_max(self) -> float:
        """The most that one batch may spend."""
        return self.audit.epsilon_max or self.budget.epsilon

    @property
    def shares(self) -> Shares:
        """What is known, and assumed, of how large groups are: public."""
        return Shares(*self.audit.shares, self.data.minimum_group, by_policy=True)

    @property
    def mechanism(self) -> Mechanism:
        """What answers; ValueError for a bounding that it cannot have."""
        mechanism = find_mechanism(self.audit.mechanism)
        if isinstance(mechanism, CauchyMechanism | Recommended):
            mechanism = replace(mechanism, shares=self.shares)
        return bounded(limited(mechanism, Limit(self.audit.reveal_max, self.shares)), self.audit.bounding)

    @property
    def summary(self) -> str:
        """One line about what is served; nothing in it was computed from the data."""
        release = self.release
        sells = "" if release is None else f"; releases {', '.join(release.columns)} by {release.protocol}"
        return (
            f"{self.data_name}: metrics {', '.join(self.audit.metrics)}; mechanism {self.audit.mechanism}; "
            f"epsilon {self.budget.epsilon:g}; developers {', '.join(self.developers)}{sells}"
        )


@dataclass(frozen=True)
class Policies:
    """What one file says: a deployment, and for each of its data sets a policy.

    Parameters
    ----------
    deployment : DeploymentSection
    datasets : mapping of str to Policy
        By what requests call the data set.
    digest : bytes
        The SHA-256 of the file.
    is_several : bool
        Whether each data set has sections of its own below ``datasets``.
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


def read(path: Path) -> Policies:
    """Read a policy.

    Raises
    ------
    PolicyError
        With one line that names the file, the key and what is wrong.
    """
    try:
        require_end(path)
        return parse(toml.content(path), path)
    except OSError as error:
        raise PolicyError(f"{path}: cannot be read: {error.strerror}") from None
    except toml.TomlError as error:
        raise PolicyError(f"{path}: not valid TOML: {error}") from None


def parse(content: bytes, path: Path) -> Policies:
    """Read the text of a policy that is in a file, or is to be; PolicyError as `read`."""
    try:
        values = toml.loads(content.decode("utf-8"))
    except UnicodeDecodeError:
        raise PolicyError(f"{path}: cannot be read: not UTF-8 text") from None
    except toml.TomlError as error:
        raise PolicyError(f"{path}: not valid TOML: {error}") from None
    several = "datasets" in values
    try:
        if problem := next(_unfit_texts(values), ""):
            raise PolicyError(problem)
        parts = _by_dataset(values) if several else {"": values}
        policies = [_policy(part, path.parent, f"datasets.{name}." * several) for name, part in parts.items()]
        _check_names(policies)
    except PolicyError as error:
        raise PolicyError(f"{path}: {error}") from None
    datasets = {policy.data_name: policy for policy in policies}
    return Policies(policies[0].deployment, datasets, hashlib.sha256(content).digest(), several)


def _by_dataset(values: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Make of sections for several data sets what each would have alone."""
    sections = values["datasets"]
    for key in values.keys() - {"deployment", "datasets"}:
        raise PolicyError(f"{key}: belongs to one data set: name it datasets.NAME.{key}")
    if not isinstance(sections, dict) or not sections:
        raise PolicyError("datasets: must have a table for each data set")
    parts = {}
    for name, section in sections.items():
        if not isinstance(section, dict):
            raise PolicyError(f"datasets.{name}: must be a table")
        data = section.get("data")
        if isinstance(data, dict):
            if "name" in data:
                raise PolicyError(f"datasets.{name}.data.name: leave it out: the data set is called {name}")
            section = section | {"data": data | {"name": name}}
        if "deployment" in section:
            raise PolicyError(f"datasets.{name}.deployment: there is one for all data sets")
        parts[name] = section | ({"deployment": values["deployment"]} if "deployment" in values else {})
    return parts


def _policy(values: dict[str, Any], folder: Path, prefix: str) -> Policy:
    """Validate one data set's part; what is wrong with a key begins with the prefix, but for the deployment's."""
    try:
        policy = Policy.model_validate(values, context=folder)
        problem = next(_problems(policy), "")
    except ValidationError as error:
        problem = _first(error)
    if problem:
        raise PolicyError(problem if problem.startswith("deployment") else prefix + problem)
    return policy


def _unfit_texts(value: object, *key: str) -> Iterator[str]:
    """Find keys and texts that are no part of a path, a name or a line."""
    if isinstance(value, dict):
        for name, below in value.items():
            yield from _unfit_texts(name, *key, repr(name)[1:-1])
            yield from _unfit_texts(below, *key, repr(name)[1:-1])
    elif isinstance(value, list):
        for each in value:
            yield from _unfit_texts(each, *key)
    elif isinstance(value, str):
        where = ".".join(key)[:_SHOWN_MAX]
        if len(value) > _TEXT_MAX:
            yield f"{where}: must have at most {_TEXT_MAX:,} characters, not {len(value):,}"
        elif any(unicodedata.category(each) in ("Cc", "Cs", "Zl", "Zp") for each in value):
            yield f"{where}: must have no control characters and no line breaks, not {_shown(value)}"


def _check_names(policies: Sequence[Policy]) -> None:
    """Refuse two data sets of one name in the ledger."""
    names = [policy.data_name for policy in policies]
    names += [policy.release_name for policy in policies if policy.release is not None]
    for name in names:
        if names.count(name) > 1:
            raise PolicyError(f"datasets: two of them, or of what they release, are called {name} in the ledger")


def check_change(before: Policies, after: Policies) -> None:
    """Refuse a policy that a running service cannot take up: it listens, and writes its ledger, where it did.

    Raises
    ------
    PolicyError
    """
    for key in DeploymentSection.model_fields:
        if getattr(before.deployment, key) != getattr(after.deployment, key):
            raise PolicyError(f"deployment.{key}: cannot change while the service runs: start it again")
    if before.releases != after.releases:
        raise PolicyError("release: the first cannot come, nor the last go, while the service runs: start it again")


def load(policy: Policy) -> tuple[Records, Rows, Grouped | None]:
    """Read the protected attributes, and check all that has to look at them; and the rows that predictions are about.

    Last come everybody's groups, None where the policy has none.

    Raises
    ------
    PolicyError
        If a value is missing and the policy does not say what then, a row is in neither group, or has no id of its own,
        or a group is smaller than the policy allows; of groups it says which rule, not which group. If somebody
        has a value that is not listed among the groups, or none, and nothing is listed that stands for it: it tells the
        column, not the row or the value.
    DataError
        If the file, a column or a value is not there.
    """
    with _named("data.source"):
        return _load(policy)


def _load(policy: Policy) -> tuple[Records, Rows, Grouped | None]:
    data = policy.data
    roles = Roles(data.protected, data.advantaged, data.disadvantaged, data.label, data.positive)
    name, read_at = str(data.source), _state(data.source)
    table = read_table(data.source, name, (roles.protected, roles.label))
    columns = [_filled(data, name, read_table(data.source, name, (column,)), column) for column in data.groups]
    ids = _ids(data, name)
    if _state(data.source) != read_at:
        raise PolicyError(f"data.source: {name}: it changed while it was read; try again")
    _warn_of_readers(data.source)
    audited = _audited(data, name, table)
    people = select(name, table.filter(audited), roles, data.impute)
    if not people.kept.all():
        # Whoever predicts for every row but those left out is told something about each of them.
        raise PolicyError(
            "data.disadvantaged: some rows are in neither group; developers predict for every row, so take such rows "
            "out of the file that both sides hold, or leave this key out to put them in this group"
        )
    try:
        records = Records(people.labels, people.protected, policy.audit.metrics)
    except RecordsError as error:
        raise PolicyError(f"audit.metrics: {error}") from None
    for metric in records.metrics:
        if records.smallest_group(metric) < data.minimum_group:
            raise PolicyError(
                f"data.minimum_group: metric {metric} looks at a group of fewer than {data.minimum_group} people; "
                "take it out of audit.metrics, or bring more data"
            )
    try:
        records = replace(records, minimum_group=data.minimum_group)
    except RecordsError:  # the service that started would tell who is in which group
        raise PolicyError(
            f"data.minimum_group: a metric looks at no more than {2 * data.minimum_group} people, so that both groups "
            f"have {data.minimum_group} or one has fewer: nobody is protected; make it smaller, or bring more data"
        ) from None
    return records, Rows(audited, ids), _grouped(data, columns, _filled(data, name, table, data.label))


def _grouped(
    data: DataSection, columns: Sequence[table_columns.Categories], outcomes: table_columns.Categories
) -> Grouped | None:
    """Put everybody in groups, whether audited or not; None where the policy has none."""
    if not data.groups:
        return None
    labels = np.where(outcomes.missing(), NO_LABEL, outcomes.having(data.positive)).astype(np.uint8)
    codes = [_group_codes(*listed, found) for listed, found in zip(data.groups.items(), columns, strict=True)]
    return Grouped(tuple(Attribute(*listed) for listed in data.groups.items()), np.stack(codes), labels)


def _filled(data: DataSection, name: str, table: pa.Table, column: str) -> table_columns.Categories:
    """Take a column of a table, with what stands for no value if the policy says so."""
    return table_columns.Categories.of(table_columns.Column.of(name, column, table)).filled(data.impute.get(column))


def _ids(data: DataSection, name: str) -> Ids | None:
    """Read what rows are known by, as it is spelt in the file; None where the policy names no ids."""
    if data.id is None:
        return None
    table = read_table(data.source, name, (data.id, *data.public), as_text=True)
    try:
        return identified(
            data.id, table[data.id].to_pylist(), {column: table[column].to_pylist() for column in data.public}
        )
    except RowsError as error:
        raise PolicyError(f"data.id: {name}: column {data.id!r}: {error}") from None


def _audited(data: DataSection, name: str, table: pa.Table) -> NDArray[np.bool_]:
    """Tell who has all values that an audit looks at; refuse that some have not, unless the policy says what then.

    Nobody is left out for want of a protected value: an answer about one person alone would tell it without noise.
    """
    lacking = {
        column: missing(name, table, column) for column in (data.label, data.protected) if column not in data.impute
    }
    counts = {column: int(rows.sum()) for column, rows in lacking.items() if rows.any()}
    dropped = counts.keys() & {data.label} if data.missing == "drop" else set()
    if counts.keys() - dropped:
        told = ", ".join(f"{table_columns.names_of([column])} {count:,}" for column, count in counts.items())
        by_label = f'; data.missing = "drop" leaves out rows without {table_columns.names_of([data.label])} alone'
        raise PolicyError(
            f"{'data.missing' if data.missing == 'drop' else 'data.source'}: {name}: missing values: {told} "
            f"of {table.num_rows:,} rows: fill them in, or say in data.impute what stands for them{by_label}"
        )
    present: NDArray[np.bool_] = ~np.any(list(lacking.values()), axis=0) if lacking else np.ones(len(table), np.bool_)
    return present


@contextmanager
def _named(key: str) -> Iterator[None]:
    """Say by which key a table was read that is none, or lacks a column or a value."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{key}: {error}") from None


def _state(source: Path) -> tuple[int, ...]:
    """Return what changes with a file; nothing where there is none."""
    try:
        found = source.stat()
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _group_codes(column: str, values: tuple[str, ...], categories: table_columns.Categories) -> NDArray[np.uint8]:
    numbers = {value: number for number, value in enumerate(values)}
    codes = np.zeros(len(categories.values), np.uint8)
    for place in np.unique(categories.codes):
        value = categories.values[place]
        stands = UNKNOWN if value == table_columns.MISSING else OTHER
        number = numbers.get(value, numbers.get(stands))
        if number is None:
            raise PolicyError(
                f"data.groups.{column}: some rows have a value that is not listed, or none: list every value, or "
                f'"{OTHER}" for those that are not listed and "{UNKNOWN}" for none'
            )
        codes[place] = number
    return np.asarray(codes[categories.codes])


def load_release(policy: Policy) -> tuple[tuple[Column, ...], NDArray[np.uint8]] | None:
    """Read the attributes that are released: the columns, and each person's codes, shape (people, columns).

    None where none are.

    Raises
    ------
    PolicyError
        If the columns stand in another order in the file, a row has a value that is not in its column's domain or none,
        or a release of so many people is too large. It tells the column, not the row or the value.
    DataError
        If the file or a column is not there.
    """
    with _named("release.source"):
        return _load_release(policy.release) if policy.release is not None else None


def _load_release(release: ReleaseSection) -> tuple[tuple[Column, ...], NDArray[np.uint8]]:
    name = str(release.source)
    places = {column: place for place, column in enumerate(header(release.source, name))}
    table = read_table(release.source, name, tuple(release.columns))
    in_order = sorted(release.columns, key=places.__getitem__)
    if in_order != list(release.columns):
        raise PolicyError(f"release.columns: must stand in the order of the file: {table_columns.names_of(in_order)}")
    _warn_of_readers(release.source)
    columns = tuple(
        Column(places[column], len(values), share, column, values)
        for (column, values), share in zip(release.columns.items(), release.shares, strict=True)
    )
    entry = 8 if LOCAL_LAWS[release.protocol].law(2, 1.0).kind == "numbers" else 1
    size = entry * table.num_rows * sum(column.domain for column in columns)
    if size > _RELEASE_BYTES_MAX:
        raise PolicyError(
            f"release.source: a release of {table.num_rows:,} people takes {size >> 20:,} MiB, and the ledger keeps at "
            f"most {_RELEASE_BYTES_MAX >> 20}: release fewer people or smaller domains"
        )
    return columns, np.stack(
        [_codes(column, table_columns.Column.of(name, column.name, table)) for column in columns], 1
    )


def traits(policy: Policy, hidden: Collection[str]) -> tuple[Traits, Traits | None]:
    """Look at what the policy's files show of whom they are about: that of the audits, and of the release if any is.

    Parameters
    ----------
    policy : Policy
    hidden : collection of str
        The columns that any data set of the deployment protects.

    Raises
    ------
    DataError
        If a file is no table.
    """
    released = None if policy.release is None else traits_of(policy.release.source, hidden)
    return traits_of(policy.data.source, hidden, policy.data.id), released


def fingerprint_of_release(policy: Policy, key: bytes) -> bytes:
    """Return a digest of the file whose attributes are released, as `Records.fingerprint` is one of the audited people.

    Of the whole file: other columns of the same people, or other domains, are paid for by the same budget.
    """
    assert policy.release is not None
    with policy.release.source.open("rb") as file:
        content = hashlib.file_digest(file, "sha256").digest()
    return hmac.digest(key, b"released" + content, hashlib.sha256)


def _codes(column: Column, found: table_columns.Column) -> NDArray[np.uint8]:
    categories = table_columns.Categories.of(found)
    codes = {value: code for code, value in enumerate(column.values)}
    if not codes.keys() >= set(categories.values):
        raise PolicyError(
            f"release.columns.{column.name}: some rows have a value that is not listed, or none: list every value that "
            f'the column may have ("{table_columns.MISSING}" for none), or take such rows out of the file'
        )
    return np.array([codes[value] for value in categories.values], np.uint8)[categories.codes]


def _warn_of_readers(source: Path) -> None:
    if source.stat().st_mode & 0o004:
        LOG.warning("%s: every user of this machine can read it; chmod 600", source)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}... of {len(text):,} characters"


def _first(error: ValidationError) -> str:
    """Say the first thing that pydantic found, in one line."""
    problem = error.errors(include_url=False)[0]
    place = [str(part) for part in problem["loc"] if part != "[key]"]
    # Below a key within a section, what follows is pydantic's own; a developer's section and a column are one deeper.
    deeper = place[0] == "developers" or place[:2] in (["release", "columns"], ["data", "groups"])
    key = ".".join(place[: 3 if deeper else 2])
    match problem["type"]:
        case "extra_forbidden":
            near = difflib.get_close_matches(place[-1], _keys(place[0] if len(place) > 1 else ""), n=1)
            return f"{key}: unknown key" + (f"; did you mean {near[0]}?" if near else "")
        case "missing":
            return f"{key}: is missing"
        case "value_error":
            return f"{key}: {problem['ctx']['error']}, not {_shown(problem['input'])}"
        case _:
            message = re.sub(r"^\w+ should ", "", problem["msg"])
            return f"{key}: must {message}, not {_shown(problem['input'])}"


def _keys(section: str) -> list[str]:
    sections: dict[str, Any] = {
        "deployment": DeploymentSection,
        "data": DataSection,
        "audit": AuditSection,
        "budget": BudgetSection,
        "developers": DeveloperSection,
        "release": ReleaseSection,
    }
    return list(sections[section].model_fields if section else Policy.model_fields)


def _problems(policy: Policy) -> Iterator[str]:
    """Find what no single key shows."""
    folder = policy.deployment.ledger.resolve().parent
    if policy.deployment.seal.resolve().is_relative_to(folder):
        yield "deployment.seal: must lie outside the ledger's folder: an old copy of that folder must not pass"
    yield from _row_problems(policy.data)
    most = {"epsilon": policy.budget.epsilon, "delta": policy.budget.delta}
    asked = {"audit.epsilon_max": policy.epsilon_max, "audit.delta": policy.audit.delta}
    for name, share in policy.developers.items():
        asked |= {f"developers.{name}.epsilon": share.epsilon, f"developers.{name}.delta": share.delta}
    for key, value in asked.items():
        unit = key.rpartition(".")[2].removesuffix("_max")
        if value > most[unit]:
            yield f"{key}: must be at most budget.{unit}, not {value:g}"
    if policy.audit.epsilon_min > policy.epsilon_max:
        yield f"audit.epsilon_min: must be at most what a batch may spend, not {policy.audit.epsilon_min:g}"
    if math.prod(len(values) for values in policy.data.groups.values()) > GROUPS_MAX:
        yield f"data.groups: their values make more than {GROUPS_MAX} groups, all columns together: list fewer"
    yield from _release_problems(policy)
    low, high = policy.audit.shares
    if not 0 < low <= high < 1:
        yield f"audit.shares: must be two numbers above 0 and below 1, the smaller first, not {[low, high]}"
        return
    try:
        mechanism = policy.mechanism
    except ValueError as error:
        yield f"audit.bounding: {error}"
        return
    for metric in policy.audit.metrics:
        if why := mechanism.refuses(metric, policy.epsilon_max, policy.audit.delta):
            yield f"audit.mechanism: {policy.audit.mechanism} does not answer metric {metric}: {why}"
    yield from _unaffordable(policy, mechanism)


def _row_problems(data: DataSection) -> Iterator[str]:
    if data.id in (data.protected, data.label):
        yield "data.id: must be a column of its own"
    if data.public and data.id is None:
        yield "data.public: needs data.id: rows are compared in the order of ids"
    if {data.protected, *data.groups} & set(data.public):
        yield "data.public: must not have the protected column, or a group's: anybody could try values against a digest"
    if {data.id, data.label} & set(data.groups):
        yield "data.groups: must not have the column of ids, nor the label, which nothing protects"
    if len({data.id, *data.public}) != 1 + len(data.public):
        yield "data.public: must be different columns, without that of ids"
    for column in data.impute.keys() - {data.protected, data.label}:
        yield f"data.impute.{column}: must be the protected column or the label: nothing else is imputed"


def _unaffordable(policy: Policy, mechanism: Mechanism) -> Iterator[str]:
    """Find whose budget never covers a batch, whatever its epsilon, or none after somebody's at another epsilon."""
    audited, rule = policy.audit, Rule(policy.budget.rule)
    kinds = candidates(mechanism, audited.delta)
    least, others = ([kind.cost(times * EPSILON_MIN, audited.delta) for kind in kinds] for times in (1, 2))
    batch = f"a batch of {audited.mechanism} at audit.delta {audited.delta:g}"
    accounts = {"budget": policy.budget} | {f"developers.{name}": share for name, share in policy.developers.items()}
    for key, section in accounts.items():
        if section.epsilon < 3 * EPSILON_MIN:
            yield f"{key}.epsilon: must be at least {3 * EPSILON_MIN:g}, not {section.epsilon:g}"
            continue
        account = Budget(section.epsilon, section.delta, rule)
        if not all(account.affords({}, loss) for loss in least):
            yield f'{key}.delta: {section.delta:g} never covers {batch} under budget.rule "{rule}"'
        for loss, other in product(least, others):
            if account.affords({loss: 1}, loss) and not account.affords({loss: 1}, other):
                yield f'{key}.delta: {section.delta:g} covers no two unlike batches: {batch} under budget.rule "{rule}"'


def _release_problems(policy: Policy) -> Iterator[str]:
    release = policy.release
    for name, share in policy.developers.items():
        if release is None and share.release:
            yield f"developers.{name}.release: there is no section release"
        elif release is not None and share.release > release.epsilon:
            yield f"developers.{name}.release: must be at most release.epsilon, not {share.release:g}"
    if release is None:
        return
    if policy.release_name == policy.data_name:
        yield "release.name: must be another than the data set's: what its people lose is counted apart"
    if (release.split == "weights") != bool(release.weights):
        yield 'release.weights: go with split = "weights", and that with them'
        return
    try:
        release.shares  # noqa: B018
    except LocalPrivacyError as error:
        yield f"release.weights: {error}"
