"""The data that a policy names, and the checks that need protected attributes, made before any caller is admitted."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import itertools
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from compliance.answers.releases import SanitisedColumn
from compliance.deployment.policy.schema import (
    DataSection,
    GroupSplit,
    Policies,
    Policy,
    PolicyError,
    PolicyRelease,
    ProbabilitiesSection,
)
from compliance.ledger import postgres
from compliance.ledger.place import is_database, shown
from compliance.records.engine import Engine, EngineError, OpenTable, TableLocation, Tables, duckdb
from compliance.records.groups import NO_LABEL, OTHER, UNKNOWN, Attribute, Grouped, Probable
from compliance.records.people import Records, RecordsError
from compliance.records.rows import FileRows, identified
from compliance.records.same_people import Traits, traits_of
from fairwall.arrays import Bools, Bytes, Floats
from fairwall.errors import DataError
from fairwall.laws.groups.proxy_attributes import GOLDEN_MIN, rounded
from fairwall.laws.local import LOCAL_LAWS
from fairwall.tables import columns as table_columns
from fairwall.tables.columns import MISSING, names_of
from fairwall.tables.people import Roles, TwoGroups, select
from fairwall.tables.reading import header
from fairwall.tables.reading import read as read_table
from fairwall.tables.values import ColumnValues, is_unknown, meaning, several
from fairwall.wire.rows import RowsError

if TYPE_CHECKING:
    import pyarrow as pa

LOG = logging.getLogger(__name__)


_RELEASE_BYTES_MAX = 64 << 20
"""Most bytes of a release: the ledger keeps each release for good."""

_FROM_1 = 0.005
"""Largest distance from 1 of a sum of probabilities, whatever their number of digits."""


@dataclass(frozen=True)
class Data:
    """A data set: its policy, and the data read for it.

    Parameters
    ----------
    records : by protected column; requests that name no column get the first.
    grouped : everybody's groups; None if the policy has none.
    released : released columns, and each person's codes, as from `load_release`; None if there are none.
    traits : of the audited people, and of those whose attributes are released.
    tables : tables of predictions about people who stay in an engine; None for a file.
    features : the features for uploaded models, shape (rows, features); None if none are taken.
    """

    policy: Policy
    records: Mapping[str, Records]
    rows: FileRows | None
    grouped: Grouped | None
    released: tuple[tuple[SanitisedColumn, ...], Bytes] | None
    traits: tuple[Traits, Traits | None]
    answers_a_day: Mapping[str, int]
    tables: Tables | None = None
    features: Floats | None = None

    @property
    def first(self) -> Records:
        """Records by the first protected column; the public part of the others is the same."""
        return next(iter(self.records.values()))

    def fingerprint(self, key: bytes) -> bytes:
        """Return a keyed digest of the people, their attributes and everything else, see `Records.fingerprint`.

        It is of the first column only: others may be added later, and facts bought about them are kept under their own
        digests.
        """
        return self.first.fingerprint(key) if self.tables is None else self.tables.known.fingerprint(key)


def load_all(policies: Policies) -> list[Data]:
    """Read every data set of a deployment; raises as `load` and `load_release` do."""
    import pyarrow as pa

    hidden = {column for each in policies.datasets.values() for column in each.hidden}
    found = [
        Data(
            each,
            *load(each),
            load_release(each),
            traits(each, hidden),
            policies.answers_a_day,
            features=load_features(each),
        )
        if each.data.file is not None
        else by_reference(each, hidden, policies)
        for each in policies.datasets.values()
    ]
    pa.default_memory_pool().release_unused()  # the pool would keep the tables' memory
    return found


def by_reference(policy: Policy, hidden: set[str], policies: Policies) -> Data:
    """Count people who stay in an engine, and make the checks that need their attributes; raises as `load` does."""
    data = policy.data
    (split,) = data.splits
    engine = Engine(
        _connected(data, policies),
        TableLocation(str(data.source).removeprefix("parquet:"))
        if data.table is None
        else TableLocation(name=data.table),
        str(data.id),
        split.column,
        data.label,
        split.advantaged[0],
        split.disadvantaged,
        data.positive,
        data.negative,
        data.missing_values,
    )
    key, opened = f"data.source: {_shown(data)}", {}
    LOG.info("%s: counting the people of %s", policy.data_name, _shown(data))
    try:
        known = engine.look()
        for name, each in policy.tables.items():
            key = f"tables.{name}"
            table = TableLocation((each.source or "").removeprefix("parquet:"), each.table or "")
            opened[name] = OpenTable(table, frozenset(each.developers))
            protected = [column for column in engine.columns(table) if column.casefold() in map(str.casefold, hidden)]
            if protected:
                raise PolicyError(f"{key}: it has {names_of(protected)}, which is protected: leave it out")
    except EngineError as error:
        raise DataError(f"{key}: {error}") from None
    tables = Tables(engine, known, opened, frozenset(hidden | {data.label}))
    records = _sound(policy, *known.columns())
    return Data(
        policy, {split.column: records}, None, None, None, (known.traits(), None), policies.answers_a_day, tables
    )


def _shown(data: DataSection) -> str:
    return shown(data.source) if is_database(str(data.source)) else str(data.source)


def files_of(policy: Policy) -> list[Path]:
    """Return the files a data set is read from; for a pattern, a path in the folder that holds all matches."""
    if policy.data.file is not None:
        return [policy.data.file]
    found = []
    for source in (policy.data.source, *(each.source for each in policy.tables.values())):
        kind, _, place = str(source).partition(":")
        if kind in ("duckdb", "parquet"):
            parts = Path(place).parts
            fixed = itertools.takewhile(lambda part: not set(part) & set("*?["), parts[:-1])
            found.append(Path(*fixed) / parts[-1])
    # DuckDB reads the number of processors there, whatever its settings, and fails if it may not.
    return [*found, Path("/sys/fs/cgroup/cpu.max")] if found else found


def _connected(data: DataSection, policies: Policies) -> Callable[[], AbstractContextManager[Any]]:
    """Return a function that opens a connection to the engine."""
    if is_database(str(data.source)):
        return lambda: postgres_engine(str(data.source))
    kind, _, place = str(data.source).partition(":")
    written = (policies.deployment.ledger, policies.deployment.seal)
    spill = next((kept.parent for kept in written if isinstance(kept, Path)), None)
    return lambda: duckdb(Path(place) if kind == "duckdb" else None, spill)


@contextmanager
def postgres_engine(url: str) -> Iterator[Any]:
    """Open a database that holds people, with the ledger's connection settings; EngineError."""
    try:
        import ibis
        import psycopg
    except ImportError:
        raise EngineError("needs psycopg and Ibis: pip install 'fairwall[engine,postgres]'") from None
    try:
        with contextlib.closing(postgres.opened(url)) as connection:
            connection.execute("SET default_transaction_read_only = on")
            yield ibis.postgres.from_connection(connection)
    except psycopg.OperationalError as error:
        raise EngineError(str(error).strip().partition("\n")[0]) from None
    except psycopg.Error as error:  # whose text may hold a value
        raise EngineError(f"PostgreSQL cannot read it: {type(error).__name__}") from None


def load(policy: Policy) -> tuple[dict[str, Records], FileRows, Grouped | None]:
    """Read the protected attributes and the audited rows, and make all checks that need these.

    The result is the records by protected column, the rows, and everybody's groups, None if the policy has none.

    PolicyError if a value is missing and the policy has no rule for that, a row is in neither group, or has no id of
    its own, or a group is smaller than the policy allows; it names the rule, not the group. PolicyError also if
    somebody's value is not among the listed groups, or is missing, and no listed value stands for that: it names the
    column, not the row or the value. DataError if the file, a column or a value does not exist.
    """
    with _named("data.source"):
        return _load(policy)


def _load(policy: Policy) -> tuple[dict[str, Records], FileRows, Grouped | None]:
    data, source = policy.data, policy.data.file
    assert source is not None, "people who stay in an engine are not read"
    name = str(source)
    LOG.info("%s: reading %s", policy.data_name, name)
    read_at = _state(source)
    table = read_table(source, name, (*data.columns, data.label), as_text=True)
    parting = [read_table(source, name, (column,), as_text=True) for column in data.groups]
    likely = [
        read_table(source, name, (*each.columns.values(), each.golden), as_text={each.golden})
        for each in data.probabilities.values()
    ]
    named = None if data.id is None else read_table(source, name, (data.id, *data.public), as_text=True)
    if _state(source) != read_at:
        raise PolicyError(f"data.source: {name}: it changed while it was read; try again")
    _warn_of_readers(source)
    audited = _audited(data, name, table)
    chosen = table_columns.chosen_rows(table, audited)
    records, grouped = (
        {split.column: _records(policy, chosen, split) for split in data.splits},
        _grouped(data, name, parting, likely, table),
    )
    ids = None
    if named is not None:
        try:
            ids = identified(str(data.id), named[data.id], {column: named[column] for column in data.public})
        except RowsError as error:
            raise PolicyError(f"data.id: {name}: column {data.id!r}: {error}") from None
    return records, FileRows(audited, ids), grouped


def _select(data: DataSection, table: pa.Table, split: GroupSplit) -> TwoGroups:
    first, *also = split.advantaged
    parts = (split.column, first, split.disadvantaged, data.label, data.positive, (), tuple(also))
    roles = Roles(*parts, data.negative, data.missing_values)
    return select(str(data.source), table, roles, data.impute)


def _records(policy: Policy, table: pa.Table, split: GroupSplit) -> Records:
    people = _select(policy.data, table, split)
    if not people.kept.all():
        # A developer who predicts for every row but those left out would learn something about each of them.
        raise PolicyError(
            "data.disadvantaged: some rows are in neither group; developers predict for every row, so take such rows "
            "out of the file that both sides hold, or name their values here too"
        )
    return _sound(policy, people.labels, people.protected)


def counted(policy: Policy) -> Iterator[str]:
    """Yield the values that count as each group and label, with numbers of rows: for the operator's eyes alone."""
    if (source := policy.data.file) is not None:
        data = policy.data
        table = read_table(source, str(source), (*data.columns, data.label), as_text=True)
        audited = table_columns.chosen_rows(table, _audited(data, str(source), table))
        yield from dict.fromkeys(line for split in data.splits for line in _select(data, audited, split).told)


def _sound(policy: Policy, labels: Bytes, protected: Bytes) -> Records:
    """Return the records; PolicyError for groups that are too small for the policy's metrics."""
    data = policy.data
    try:
        records = Records(labels, protected, policy.audit.metrics)
    except RecordsError as error:
        raise PolicyError(f"audit.metrics: {error}") from None
    for metric in records.metrics:
        if records.smallest_group(metric) < data.minimum_group:
            raise PolicyError(
                f"data.minimum_group: metric {metric} looks at a group of fewer than {data.minimum_group} people; "
                "take it out of audit.metrics, or bring more data"
            )
    try:
        return replace(records, minimum_group=data.minimum_group)
    except RecordsError:  # starting would reveal everybody's group
        raise PolicyError(
            f"data.minimum_group: a metric looks at no more than {2 * data.minimum_group} people, so that both groups "
            f"have {data.minimum_group} or one has fewer: nobody is protected; make it smaller, or bring more data"
        ) from None


def _grouped(
    data: DataSection, name: str, tables: Sequence[pa.Table], likely: Sequence[pa.Table], outcomes: pa.Table
) -> Grouped | None:
    """Return everybody's groups, audited or not; None if the policy has none."""
    if not data.attributes:
        return None
    listed = tuple(Attribute(*each) for each in data.groups.items())
    # A missing value is `UNKNOWN` where that is listed, whatever gaps impute for it.
    filled = [{} if UNKNOWN in each.values else data.impute for each in listed]
    codes = [
        _group_codes(each, _values(data, name, own, each.name, each.values, by))
        for each, own, by in zip(listed, tables, filled, strict=True)
    ]
    found = [
        _probable(data, name, attribute, section, table)
        for (attribute, section), table in zip(data.probabilities.items(), likely, strict=True)
    ]
    labels = _values(data, name, outcomes, data.label, (data.positive, *data.negative), data.impute)
    of_label = np.where(labels.missing(), NO_LABEL, labels.having(data.positive)).astype(np.uint8)
    every = tuple(Attribute(*each) for each in data.attributes.items())
    codes += [known for known, _ in found]
    return Grouped(every, np.stack(codes), of_label, found[0][1] if found else None)


def _probable(
    data: DataSection, name: str, attribute: str, section: ProbabilitiesSection, table: pa.Table
) -> tuple[Bytes, Probable]:
    """Return the codes of the golden sample, and an attribute known by probabilities."""
    key, columns = f"data.probabilities.{attribute}", section.columns
    likely = [table_columns.TypedColumn.of(name, column, table) for column in columns.values()]
    for column in likely:
        if not column.numeric:
            raise PolicyError(
                f"{key}.columns: {column.where} has no numbers{column.commas}: it must have probabilities"
            )
    numbers = np.stack([column.floats() for column in likely], 1)
    allowed = _from_1(numbers)
    wrong = ~((numbers >= 0).all(axis=1) & (np.abs(numbers.sum(axis=1) - 1) <= allowed))
    if wrong.any():
        raise PolicyError(
            f"{key}.columns: {name}: row {int(wrong.argmax()) + 1} has no probabilities, at least 0, that sum up to 1 "
            f"within {allowed:.3g}, nor have {int(wrong.sum()) - 1:,} more of {len(wrong):,} rows"
        )
    known = _values(data, name, table, section.golden, tuple(columns), {})
    golden, places = ~known.missing(), {meaning(value): place for place, value in enumerate(columns)}
    if not set(known.there) <= places.keys():
        raise PolicyError(f"{key}.golden: some rows have a value that is not among its columns' values: list every one")
    if not GOLDEN_MIN <= golden.sum() < len(golden):
        raise PolicyError(
            f"{key}.golden: the value is known of {int(golden.sum()):,} of {len(golden):,} people; it must be of at "
            f"least {GOLDEN_MIN}, drawn at random, and not of all, who are counted by data.groups"
        )
    codes = np.array([places.get(value, 0) for value in known.values], np.uint8)[known.codes]
    return codes, Probable(attribute, rounded(numbers), golden)


def _from_1(numbers: Floats) -> float:
    """Return the tolerance of sums to 1: half a unit of the last digit for each column, for one to three digits."""
    digits = (d for d in (1, 2, 3) if np.allclose(numbers, numbers.round(d), rtol=0, atol=1e-12, equal_nan=True))
    rounding = (numbers.shape[1] / 2 * 10.0**-d for d in digits)
    return max(_FROM_1, min(next(rounding, 0.0), 0.5)) + 1e-9


def _values(
    data: DataSection, name: str, table: pa.Table, column: str, named: tuple[str, ...], impute: Mapping[str, str]
) -> ColumnValues:
    """Return a column of a table, with missing values imputed if the policy does so."""
    filler = impute.get(column)
    return ColumnValues.of(name, column, table, (*named, *several(filler)), data.missing_values).filled(filler)


def _audited(data: DataSection, name: str, table: pa.Table) -> Bools:
    """Return who has all values that an audit reads; PolicyError for missing values without a rule in the policy.

    Nobody is left out for a missing protected value: an answer about one person alone would reveal that without noise.
    """
    named = {data.label: (data.positive, *data.negative)}
    named |= {split.column: (*split.advantaged, *split.disadvantaged) for split in data.splits}
    lacking = {
        column: ColumnValues.of(name, column, table, values, data.missing_values).missing()
        for column, values in named.items()
        if column not in data.impute
    }
    counts = {column: int(rows.sum()) for column, rows in lacking.items() if rows.any()}
    dropped = counts.keys() & {data.label} if data.missing == "drop" else set()
    if counts.keys() - dropped:
        told = ", ".join(f"{names_of([column])} {count:,}" for column, count in counts.items())
        by_label = f'; data.missing = "drop" leaves out rows without {names_of([data.label])} alone'
        raise PolicyError(
            f"{'data.missing' if data.missing == 'drop' else 'data.source'}: {name}: missing values: {told} "
            f"of {table.num_rows:,} rows: fill them in, or say in data.impute what stands for them{by_label}"
        )
    present: Bools = ~np.any(list(lacking.values()), axis=0) if lacking else np.ones(len(table), np.bool_)
    return present


@contextmanager
def _named(key: str) -> Iterator[None]:
    """Name the policy's key in a DataError."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{key}: {error}") from None


def _state(source: Path) -> tuple[int, ...]:
    """Return a stamp that changes with a file; empty if there is no file."""
    try:
        found = source.stat()
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _group_codes(listed: Attribute, categories: ColumnValues) -> Bytes:
    numbers = {meaning(value): number for number, value in enumerate(listed.values)}
    codes = np.zeros(len(categories.values), np.uint8)
    for place in np.unique(categories.codes):
        value = categories.values[place]
        stands = UNKNOWN if is_unknown(value) else OTHER
        number = numbers.get(value, numbers.get(stands))
        if number is None:
            raise PolicyError(
                f"data.groups.{listed.name}: some rows have a value that is not listed, or none: list every value, or "
                f'"{OTHER}" for those that are not listed and "{UNKNOWN}" for none and for what says so'
            )
        codes[place] = number
    return np.asarray(codes[categories.codes])


def load_features(policy: Policy) -> Floats | None:
    """Read the features for uploaded models, shape (rows, features), NaN for no value; None if none are taken.

    PolicyError if a column has anything but numbers: it names the column, not the row or the value. DataError if a
    column does not exist.
    """
    if policy.sealed is None or policy.data.file is None:
        return None
    source, names = policy.data.file, policy.sealed.features
    with _named("sealed.features"):
        table = read_table(source, str(source), names)
        columns = [table_columns.TypedColumn.of(str(source), name, table) for name in names]
    for column in columns:
        if not column.numeric:
            raise PolicyError(
                f"sealed.features: {column.where} has no numbers{column.commas}: leave it out, or give it as numbers"
            )
    return np.stack([column.floats() for column in columns], 1)


def load_release(policy: Policy) -> tuple[tuple[SanitisedColumn, ...], Bytes] | None:
    """Read the attributes to release: the columns, and each person's codes, shape (people, columns); None if none are.

    PolicyError if the columns stand in another order in the file, a row has no value or one that is not in its column's
    domain, or the release is too large. It names the column, not the row or the value. DataError if the file or a
    column does not exist.
    """
    with _named("release.source"):
        return None if policy.release is None else _load_release(policy.release, policy.data.missing_values)


def _load_release(release: PolicyRelease, missing: tuple[str, ...]) -> tuple[tuple[SanitisedColumn, ...], Bytes]:
    name = str(release.source)
    places = {column: place for place, column in enumerate(header(release.source, name))}
    table = read_table(release.source, name, tuple(release.columns), as_text=True)
    in_order = sorted(release.columns, key=places.__getitem__)
    if in_order != list(release.columns):
        raise PolicyError(f"release.columns: must stand in the order of the file: {names_of(in_order)}")
    _warn_of_readers(release.source)
    columns = tuple(
        SanitisedColumn(places[column], len(values), share, column, values)
        for (column, values), share in zip(release.columns.items(), release.shares, strict=True)
    )
    entry = 8 if LOCAL_LAWS[release.protocol].law(2, 1.0).kind == "numbers" else 1
    size = entry * table.num_rows * sum(column.domain for column in columns)
    if size > _RELEASE_BYTES_MAX:
        raise PolicyError(
            f"release.source: a release of {table.num_rows:,} people takes {size >> 20:,} MiB, and the ledger keeps at "
            f"most {_RELEASE_BYTES_MAX >> 20}: release fewer people or smaller domains"
        )
    return columns, np.stack([_codes(column, name, table, missing) for column in columns], 1)


def traits(policy: Policy, hidden: Collection[str]) -> tuple[Traits, Traits | None]:
    """Return traits that identify the people in the policy's files: the audits', and the release's if there is one.

    DataError if a file is no table.

    `hidden`: the columns that any data set of the deployment protects.
    """
    released = None if policy.release is None else traits_of(policy.release.source, hidden)
    assert policy.data.file is not None, "people who stay in an engine are not read"
    return traits_of(policy.data.file, hidden, policy.data.id), released


def fingerprint_of_release(policy: Policy, key: bytes) -> bytes:
    """Return a keyed digest of the released file, as `Records.fingerprint` is of the audited people.

    It is of the whole file: other columns of the same people, or other domains, are paid from the same budget.
    """
    assert policy.release is not None
    with policy.release.source.open("rb") as file:
        content = hashlib.file_digest(file, "sha256").digest()
    return hmac.digest(key, b"released" + content, hashlib.sha256)


def _codes(column: SanitisedColumn, name: str, table: pa.Table, missing: tuple[str, ...]) -> Bytes:
    found = ColumnValues.of(name, column.name, table, column.values, missing)
    codes = {meaning(value): code for code, value in enumerate(column.values)}
    if not codes.keys() >= set(found.values):
        raise PolicyError(
            f"release.columns.{column.name}: some rows have a value that is not listed, or none: list every value that "
            f'the column may have ("{MISSING}" for none), or take such rows out of the file'
        )
    return np.array([codes[value] for value in found.values], np.uint8)[found.codes]


def _warn_of_readers(source: Path) -> None:
    if source.stat().st_mode & 0o004:
        LOG.warning("%s: every user of this machine can read it; chmod 600", source)
