"""From a file to named columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from fairwall.tables import blocks
from fairwall.tables.columns import names_of
from fairwall.tables.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import parquet

CSV = (".csv", ".csv.gz")
PARQUET = (".parquet", ".pq")
ROWS_MAX = 10_000_000
BYTES_MAX = 2**31


def header(path: Path, name: str) -> list[str]:
    """Read the names of a file's columns; ``name`` is what an error calls the file.

    DataError if it is no table, or a name occurs twice.
    """
    with _readable(path, name):
        columns = blocks.header(path, name) if _is_csv(path) else _parquet_header(path)
    twice = [column for column, count in Counter(columns).items() if count > 1]
    if twice:
        raise DataError(f"{name}: column {twice[0]!r} occurs more than once; columns need names of their own")
    return columns


def read(path: Path, name: str, columns: Sequence[str] | None = None, *, as_text: bool = False) -> pa.Table:
    """Read a CSV or Parquet file; memory grows with the columns that are kept, not with the file.

    pyarrow is imported here and not above: it takes longer than everything else a command line does at its start.

    Parameters
    ----------
    path, name : Path, str
        Where the file is, and what an error calls it.
    columns : sequence of str or None
        Which columns to keep, by default all of them.
    as_text : bool
        Leave the fields of a CSV file as they are spelt, rather than find each column's type.

    Raises
    ------
    DataError
        If the file is no table or has no such column, for the first row that is not as the header, and as soon as the
        table grows too large.
    """
    there = header(path, name)
    for column in columns or ():
        if column not in there:
            raise DataError(f"{name}: no column {column!r}; its columns are {names_of(there)}")
    wanted = there if columns is None else list(dict.fromkeys(columns))

    def kept(rows: int, size: int) -> None:
        if rows > ROWS_MAX:
            raise DataError(f"{name}: has more than {ROWS_MAX:,} rows; take a sample")
        if size > BYTES_MAX:
            raise DataError(f"{name}: takes more than {BYTES_MAX >> 30} GiB; leave out rows or columns")

    with _readable(path, name):
        if not _is_csv(path):
            table = _parquet(path, wanted, kept)
        else:
            table = (blocks.read_text if as_text else blocks.read)(path, name, wanted, kept)
    if not table.num_rows:
        raise DataError(f"{name}: has no rows")
    return table


@dataclass(frozen=True)
class TextColumn:
    """A column of text of a Parquet file, as an Arrow column, but read each time rather than held.

    Parameters
    ----------
    path, name : Path, str
        As of `read`.
    column : str
    type : pyarrow.DataType
    rows : int
    """

    path: Path
    name: str
    column: str
    type: pa.DataType
    rows: int

    def __len__(self) -> int:
        return self.rows

    def iterchunks(self) -> Iterator[pa.Array]:
        """Give the column some rows at a time; DataError as of `read`."""
        from pyarrow import parquet

        with _readable(self.path, self.name), parquet.ParquetFile(self.path) as file:
            for batch in _batches(file, [self.column]):
                yield batch.column(self.column)

    def whole(self) -> pa.ChunkedArray:
        """Hold it after all."""
        return read(self.path, self.name, [self.column])[self.column]

    def to_pylist(self) -> list[str | None]:
        """Give each row's text."""
        return cast(list[str | None], self.whole().to_pylist())


def column(path: Path, name: str, column: str) -> pa.ChunkedArray | TextColumn:
    """Read one column, see `read`; text of a Parquet file only when it is looked at."""
    from pyarrow import parquet, types

    if not _is_csv(path):
        with _readable(path, name), parquet.ParquetFile(path) as file:
            kind, rows = file.schema_arrow.field(column).type, file.metadata.num_rows
        if types.is_string(kind) or types.is_large_string(kind):
            return TextColumn(path, name, column, kind, rows)
    return read(path, name, [column])[column]


def _batches(file: parquet.ParquetFile, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Read some rows at a time; all groups of rows at once would keep their buffers until the last of them is read."""
    for group in range(file.num_row_groups):
        yield from file.iter_batches(row_groups=[group], columns=list(columns))


def _is_csv(path: Path) -> bool:
    return path.name.lower().endswith(CSV)


@contextmanager
def _readable(path: Path, name: str) -> Iterator[None]:
    """Say in one line why a file cannot be read."""
    import pyarrow as pa

    try:
        there = path.is_file()
    except (OSError, ValueError) as error:
        raise DataError(f"{name}: cannot be read; {getattr(error, 'strerror', None) or error}") from None
    if not there:
        raise DataError(f"{name}: no such file")
    if not path.name.lower().endswith(CSV + PARQUET):
        raise DataError(f"{name}: neither CSV nor Parquet; its name must end in {', '.join(CSV + PARQUET)}")
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeError) as error:
        # The library's own words may quote a row, and rows are about people.
        form = "CSV in UTF-8" if _is_csv(path) else "Parquet"
        reason = getattr(error, "strerror", None) or f"it is not well-formed {form}"
        raise DataError(f"{name}: cannot be read; {reason}") from None


def _parquet_header(path: Path) -> list[str]:
    from pyarrow import parquet

    # ParquetFile rather than read_table, which would take folders called "a=1" on the way for columns.
    with parquet.ParquetFile(path) as file:
        return list(file.schema_arrow.names)


def _parquet(path: Path, columns: Sequence[str], kept: Callable[[int, int], None]) -> pa.Table:
    import pyarrow as pa
    from pyarrow import parquet

    batches: list[pa.RecordBatch] = []
    rows = size = 0
    with parquet.ParquetFile(path) as file:
        kept(file.metadata.num_rows, 0)
        for batch in _batches(file, columns):
            batches.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
            kept(rows, size)
    # A column called "a" comes with those called "a.b", if there are any.
    return pa.Table.from_batches(batches).select(list(columns)) if batches else pa.table({})
