"""People who stay in an engine, DuckDB or PostgreSQL: it is queried for sums, and never for anybody's row.

A developer's table of predictions is joined with the people on their ids by one query, which sums whole numbers: a
decision is 0 or 1, a score is rounded to multiples of 2^-24. So neither the order of rows nor the number of threads
changes the result. Column names reach the engine as quoted identifiers, and only if the table has them.

**Everybody once.** A person who counted twice would be hidden half as well. So the ids of a table are counted exactly,
and must be as many as its rows. Digests, which are sums over rows in any order, check that it has everybody's ids, and
that people have not changed since the start. They are against accidents: they are no cryptography.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from compliance.records.same_people import Traits, traits_by_ids
from compliance.records.sums import GRID, TableSums
from fairwall.arrays import Bytes, Floats, Ints
from fairwall.errors import DataError, UserError
from fairwall.rpc import fair_use
from fairwall.rpc.errors import Refusal
from fairwall.tables.columns import no_column
from fairwall.tables.people import GROUPS, OUTCOMES
from fairwall.tables.values import MOST_VALUES_LISTED, ColumnValues, several
from fairwall.wire.v1 import error_pb2
from fairwall.wire.v1.error_pb2 import AuditError

_MEMORY, _THREADS = "1GB", 4
"""Memory and threads of a query in this process."""

_SAMPLE = 1024
"""Most ids that are compared with those of other data sets."""

LOG = logging.getLogger(__name__)

_TEXTS_MAX = 1000
"""Most values of a column that are read."""

_ONE_AT_A_TIME = threading.Lock()

_Cell = tuple[int, int]
"""A label, and 1 for the advantaged group, 0 for the other."""


class EngineError(UserError):
    """People who cannot be audited where they are. The text is one line, without anybody's value."""


@dataclass(frozen=True)
class TableLocation:
    """The place of rows: a pattern of Parquet files, or a table of the data's database, also as "schema.table"."""

    files: str = ""
    name: str = ""

    def __str__(self) -> str:
        return self.files or self.name


@dataclass(frozen=True)
class EnginePeople:
    """An engine's summary of everybody.

    `counts`, `quick`: number of people, and a digest of their ids that detects a change. `whose`: a digest of their ids
    that is the same in every version of the engine. `sample`: some of the ids, selected by the ids alone. `spelt`: the
    engine's texts for the advantaged values, and for those of a positive label.
    """

    counts: Mapping[_Cell, int] = field(repr=False)
    quick: Mapping[_Cell, int] = field(repr=False)
    whose: Mapping[_Cell, tuple[int, int]] = field(repr=False)
    sample: tuple[str, ...] = field(repr=False)
    spelt: tuple[tuple[str, ...], ...] = field(default=(), repr=False)

    @property
    def number(self) -> int:
        """Number of people."""
        return sum(self.counts.values())

    def columns(self) -> tuple[Bytes, Bytes]:
        """Return labels and groups as if people were ordered by these: for counts, where no single person is read."""
        cells, counts = list(self.counts), list(self.counts.values())
        labels, protected = (np.repeat(np.array([cell[i] for cell in cells], np.uint8), counts) for i in (0, 1))
        return labels, protected

    def fingerprint(self, key: bytes) -> bytes:
        """Return a keyed digest as `compliance.records.people.Records.fingerprint`, for people with ids."""
        groups = sorted(self._ids(lambda cell, group=group: cell[1] == group) for group in (0, 1))  # type: ignore[misc]
        cells = [self._ids(lambda cell, wanted=wanted: cell == wanted) for wanted in ((0, 0), (0, 1), (1, 0), (1, 1))]  # type: ignore[misc]
        halves = b"whose" + b"".join(groups), b"what" + b"".join(cells)
        return b"".join(hmac.digest(key, half, hashlib.sha256)[:16] for half in halves)

    def traits(self) -> Traits:
        """Return traits that tell whether another data set has the same people: their ids and their number."""
        return traits_by_ids(self._ids(lambda _: True), self.number, self.sample)

    def _ids(self, wanted: Callable[[_Cell], bool]) -> bytes:
        chosen = [cell for cell in self.counts if wanted(cell)]
        lanes = [sum(self.whose[cell][i] for cell in chosen) for i in (0, 1)]
        return _digest(sum(self.counts[cell] for cell in chosen), *lanes)


@dataclass(frozen=True)
class Engine:
    """The people in an engine, and the meaning of their columns.

    `connect`: opens the engine, an Ibis backend, for a query; raises `EngineError` if it is not there. `id`,
    `protected`, `label`: its columns. `advantaged`, `disadvantaged`, `positive`, `negative`: their values, see
    `fairwall.tables.people.Roles`. `missing`: texts that count as missing, besides those that always do.
    """

    connect: Callable[[], AbstractContextManager[Any]] = field(repr=False)
    people: TableLocation
    id: str
    protected: str
    label: str
    advantaged: str
    disadvantaged: str | tuple[str, ...] | None
    positive: str
    negative: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    def columns(self, table: TableLocation) -> tuple[str, ...]:
        """Return the names of a table's columns; EngineError if it cannot be read."""
        with self.connect() as backend:
            return tuple(_opened(backend, table).columns)

    def look(self) -> EnginePeople:
        """Count everybody by label and group.

        EngineError if the table or a column does not exist, somebody lacks a value or a unique id, or is in neither
        group.
        """
        with self.connect() as backend:
            spelt = self._spelt(backend)
            told, functions = self._everybody(backend, spelt).rename(i="id"), _Functions(backend.name)
            lanes = functions.stable(told["i"].cast("string"))
            by = told.group_by("y", "a").agg(
                n=told.count(),
                quick=functions.total(functions.quick([told["i"]], 0)),
                first=functions.total(lanes[0]),
                second=functions.total(lanes[1]),
            )
            rows = _rows(backend, by)
            (ids,) = _rows(backend, told.aggregate(rows=told.count(), ids=told["i"].nunique()))
            texts = told.select(text=told["i"].cast("string"), at=lanes[0]).order_by("at", "text").limit(_SAMPLE)
            sample = tuple(row["text"] for row in _rows(backend, texts))
        if ids["rows"] != ids["ids"]:
            raise EngineError(f"column {self.id!r}: a row has no id, or that of another")
        cells = {(int(row["y"]), int(row["a"])): row for row in sorted(rows, key=lambda row: (row["y"], row["a"]))}
        return EnginePeople(
            {cell: int(row["n"]) for cell, row in cells.items()},
            {cell: int(row["quick"]) for cell, row in cells.items()},
            {cell: (int(row["first"]), int(row["second"])) for cell, row in cells.items()},
            sample,
            spelt,
        )

    def sums(
        self,
        table: TableLocation,
        id_column: str,
        models: Sequence[str],
        most: int,
        hidden: Collection[str],
        known: EnginePeople,
    ) -> TableSums:
        """Return sums of a table's predictions, joined with everybody on ids, by one query.

        Refusal for a column that is missing or may not be used, ids that are not everybody's exactly once, and invalid
        predictions; EngineError.

        `id_column`, `models`: columns of the table; empty `models` means all but the ids. `most`: largest number of
        models. `hidden`: the columns that hold no predictions, whatever table they are in. `known`: the people when the
        service started.
        """
        with fair_use.waiting(), _ONE_AT_A_TIME, self.connect() as backend:
            scores, people = _opened(backend, table), self._everybody(backend, known.spelt)
            names = tuple(models) or tuple(name for name in scores.columns if name != id_column)
            kinds = {name: scores[name].type() for name in scores.columns}
            closed = {name.casefold() for name in (*hidden, self.protected, self.label)}
            if (
                id_column not in kinds
                or not set(names) <= kinds.keys() - {id_column}
                or len(set(names)) != len(names)
                or {name.casefold() for name in (id_column, *names)} & closed
                or not all(kinds[name].is_numeric() or kinds[name].is_boolean() for name in names)
            ):
                raise Refusal(error_pb2.REASON_COLUMN_UNKNOWN)
            if not 1 <= len(names) <= most:
                raise Refusal(AuditError(reason=error_pb2.REASON_QUERIES_OUT_OF_RANGE, queries_max=most))
            rows = _rows(backend, _joined(backend, people, scores, id_column, names))
        return _checked(rows, len(names), known)

    def _everybody(self, backend: Any, spelt: tuple[tuple[str, ...], ...]) -> Any:
        """Return everybody's id, label and group, by the engine's texts of values."""
        table = _opened(backend, self.people)
        group, label = (
            table[column].cast("string").isin(texts)
            for column, texts in zip((self.protected, self.label), spelt, strict=True)
        )
        return table.select(id=table[self.id], y=label, a=group)

    def _spelt(self, backend: Any) -> tuple[tuple[str, ...], ...]:
        """Return the engine's texts that mean a 1; EngineError for values on neither side, see `ColumnValues.sides`."""
        table, found = _opened(backend, self.people), list[tuple[str, ...]]()
        for column in (self.id, self.protected, self.label):
            if column not in table.columns:
                raise EngineError(no_column(column, table.columns))
        sides = (
            (self.protected, several(self.advantaged), several(self.disadvantaged), GROUPS),
            (self.label, several(self.positive), several(self.negative), OUTCOMES),
        )
        for column, ones, zeros, words in sides:
            by = table.select(text=table[column].cast("string")).group_by("text").agg(n=lambda of: of.count())
            rows = _rows(backend, by.limit(_TEXTS_MAX + 1))
            if not rows:
                raise EngineError("has no rows: is it the table that you mean?")
            if len(rows) > _TEXTS_MAX:
                raise EngineError(f"column {column!r} has more than {_TEXTS_MAX:,} values, not those of two sides")
            # A row of each text, and more of common ones: enough for `ColumnValues.known`.
            codes = np.concatenate([np.full(min(row["n"], 2 * MOST_VALUES_LISTED), i) for i, row in enumerate(rows)])
            values = ColumnValues.spelt(
                f"column {column!r}", [row["text"] for row in rows], codes, (*ones, *zeros), self.missing
            )
            if values.missing().any():
                raise EngineError(f"a row has no value in {self.protected!r} or {self.label!r}: fill them in")
            try:
                one, zero = values.sides(ones, zeros, words)
            except DataError as error:
                raise EngineError(str(error)) from None
            if not (one | zero).all():
                raise EngineError(f"some rows have a {column!r} that is neither {' nor '.join(words)}: take them out")
            found.append(tuple(str(rows[code]["text"]) for code in np.unique(codes[one])))
        return tuple(found)


@dataclass(frozen=True)
class OpenTable:
    """A table of predictions, and the developers who may use it."""

    table: TableLocation
    developers: frozenset[str]


@dataclass(frozen=True)
class Tables:
    """The tables of predictions about people who stay in an engine.

    `known`: the people when the service started. `opened`: tables by their names in requests. `hidden`: the columns
    that hold no predictions, whatever table they are in.
    """

    engine: Engine
    known: EnginePeople
    opened: Mapping[str, OpenTable]
    hidden: frozenset[str]

    def sums(self, developer: str, name: str, id_column: str, models: Sequence[str], most: int) -> TableSums:
        """Return sums of a table, for a developer who may use it: `Engine.sums`.

        Refusal as there; for another table; and if the engine fails, with the reason in the log only.
        """
        found = self.opened.get(name)
        if found is None or developer not in found.developers:
            raise Refusal(error_pb2.REASON_TABLE_UNKNOWN)
        try:
            return self.engine.sums(found.table, id_column, models, most, self.hidden, self.known)
        except EngineError as error:
            LOG.error("table %s: %s", name, error)
            raise Refusal(error_pb2.REASON_TABLE_UNAVAILABLE) from None


@contextmanager
def duckdb(database: Path | None, spill: Path | None) -> Iterator[Any]:
    """Open DuckDB in this process, on a read-only file or on Parquet files.

    EngineError also for what DuckDB cannot read later on.

    `spill`: a folder for data that do not fit in memory; None for none.
    """
    try:
        import duckdb
        import ibis
    except ImportError:
        raise EngineError("needs DuckDB and Ibis: pip install 'fairwall[engine]'") from None
    settings: dict[str, Any] = {
        "memory_limit": _MEMORY,
        "threads": min(_THREADS, os.cpu_count() or 1),
        "temp_directory": "" if spill is None else str(spill),
        "preserve_insertion_order": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_persistent_secrets": False,
    }
    try:
        connection = duckdb.connect(str(database or ":memory:"), read_only=database is not None, config=settings)
        with connection:
            yield ibis.duckdb.from_connection(connection)
    except duckdb.Error as error:  # whose text may hold a value
        raise EngineError(f"DuckDB cannot read it: {type(error).__name__}") from None


class _Functions:
    """Functions of an engine that Ibis has no name for; digests are of a row, and whole numbers of 64 bits."""

    def __init__(self, engine: str) -> None:
        self._duckdb, self._spark = engine == "duckdb", engine == "pyspark"

    def total(self, number: Any) -> Any:
        """Return the sum of 64-bit whole numbers as a wider one, which Spark needs a cast for."""
        return (number.cast("decimal(38, 0)") if self._spark else number).sum()

    def quick(self, values: Sequence[Any], seed: int) -> Any:
        """Return a digest of some values of a row; it may differ in another version of the engine."""
        import ibis

        if self._duckdb or self._spark:
            row = ibis.struct({"seed": ibis.literal(seed), **{f"c{i}": value for i, value in enumerate(values)}})
            return _builtin("hash", (row,), "uint64") if self._duckdb else _builtin("xxhash64", (row,), "int64")
        texts = [value.cast("string").fill_null("") for value in reversed(values)]  # an id, the only free text, last
        return _builtin(
            "hashtextextended", (reduce(lambda a, b: a + "|" + b, texts), ibis.literal(seed, "int64")), "int64"
        )

    def stable(self, text: Any) -> tuple[Any, Any]:
        """Return two digests of a text that never change."""
        import ibis

        if self._duckdb:
            return _builtin("md5_number_lower", (text,), "uint64"), _builtin("md5_number_upper", (text,), "uint64")
        name = "xxhash64" if self._spark else "hashtextextended"
        first, second = (_builtin(name, (text, ibis.literal(seed, "int64")), "int64") for seed in (1, 2))
        return first, second


def _builtin(name: str, arguments: tuple[Any, ...], gives: str) -> Any:
    import ibis

    kinds = tuple(argument.type() for argument in arguments)
    named = (lambda _a: None) if len(arguments) == 1 else (lambda _a, _b: None)  # Ibis counts their parameters
    return ibis.udf.scalar.builtin(named, name=name, signature=(kinds, gives))(*arguments)


def _opened(backend: Any, table: TableLocation) -> Any:
    import ibis

    try:
        if table.files:
            return backend.read_parquet(table.files)
        schema, _, name = table.name.rpartition(".")
        return backend.table(name, database=schema or None)
    except (ibis.common.exceptions.IbisError, OSError):
        raise EngineError("there is no such table: name one of the database's") from None


def _rows(backend: Any, query: Any) -> list[dict[str, Any]]:
    """Return the rows of one query; whole numbers stay exact, however large."""
    if backend.name == "pyspark":
        return [row.asDict() for row in backend.raw_sql(backend.compile(query)).collect()]
    cursor = backend.con.execute(backend.compile(query))
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _joined(backend: Any, people: Any, scores: Any, id_column: str, names: Sequence[str]) -> Any:
    """Return the query for sums by label and group, and for the table's numbers of rows and ids."""
    functions = _Functions(backend.name)
    columns = {f"m{j}": _number(scores[name]) for j, name in enumerate(names)}
    told = scores.select(s=scores[id_column], **columns)
    here, there = people["id"], told["s"]
    if here.type().copy(nullable=True) != there.type().copy(nullable=True):
        here, there = here.cast("string"), there.cast("string")
    joined = people.join(told, here == there)
    values = [joined[name] for name in columns]
    sums = {"n": joined.count(), "quick": functions.total(functions.quick([joined["id"]], 0))}
    row = functions.quick([joined["id"], *values], 1)
    sums |= {"digest1": functions.total(row), "digest2": functions.total(functions.quick([row], 2))}
    for j, value in enumerate(values):
        steps = value
        if value.type().is_floating():
            steps = ((value >= 0) & (value <= 1)).ifelse(value * float(GRID), 0.0).round().cast("int64")
            sums |= {f"between{j}": ((steps > 0) & (steps < GRID)).sum()}
        sums |= {f"sum{j}": steps.sum(), f"min{j}": value.min(), f"max{j}": value.max(), f"count{j}": value.count()}
    # Counted on the table itself: if this were the expression above, DuckDB would materialise it first.
    ids = scores.aggregate(rows=scores.count(), ids=scores[id_column].nunique())
    return joined.group_by("y", "a").agg(**sums).cross_join(ids)


def _number(column: Any) -> Any:
    if column.type().is_integer():
        return column
    return column.cast("int32" if column.type().is_boolean() else "float64")


def _checked(rows: Sequence[Mapping[str, Any]], models: int, known: EnginePeople) -> TableSums:
    """Refuse rows that are not everybody once, or are no predictions; return the sums."""
    if not rows or not rows[0]["rows"] == rows[0]["ids"] == known.number == sum(row["n"] for row in rows):
        raise Refusal(error_pb2.REASON_ROWS_DIFFER)
    if {(row["y"], row["a"]): (row["n"], row["quick"]) for row in rows} != {
        cell: (number, known.quick[cell]) for cell, number in known.counts.items()
    }:
        LOG.error("people are no longer who they were when the service read them: start it again")
        raise Refusal(error_pb2.REASON_ROWS_DIFFER)
    ends = np.array([[row[f"{end}{j}"] for j in range(models)] for row in rows for end in ("min", "max")], np.float64)
    if any(row[f"count{j}"] != row["n"] for row in rows for j in range(models)) or not np.isfinite(ends).all():
        raise Refusal(error_pb2.REASON_PREDICTIONS_NOT_FINITE)
    if ends.min() < 0 or ends.max() > 1:
        raise Refusal(error_pb2.REASON_PREDICTIONS_OUT_OF_RANGE)
    return _of_labels(rows, models)


def _of_labels(rows: Sequence[Mapping[str, Any]], models: int) -> TableSums:
    """Return sums by label, converted from steps to units of 1."""

    def total(row: Mapping[str, Any], j: int) -> float:
        return int(row[f"sum{j}"]) / (GRID if f"between{j}" in row else 1)

    def totals(groups: Collection[int]) -> Floats:
        chosen = [[row for row in rows if row["y"] == label and row["a"] in groups] for label in (0, 1)]
        return np.array([[sum(total(row, j) for row in of) for j in range(models)] for of in chosen])

    def people(groups: Collection[int]) -> Ints:
        return np.array([sum(row["n"] for row in rows if row["y"] == y and row["a"] in groups) for y in (0, 1)])

    return TableSums(
        people=people((0, 1)),
        total=totals((0, 1)),
        n0=people((0,)),
        sum0=totals((0,)),
        are_decisions=not any(row.get(f"between{j}") for row in rows for j in range(models)),
        digest=_digest(*(sum(int(row[f"digest{seed}"]) for row in rows) for seed in (1, 2))),
    )


def _digest(*numbers: int) -> bytes:
    return b"".join((number % 2**64).to_bytes(8, "little") for number in numbers)
