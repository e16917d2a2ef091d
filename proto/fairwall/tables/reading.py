"""Read files as tables of named columns."""

from __future__ import annotations

import contextlib
import gzip
import re
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from fairwall.errors import DataError
from fairwall.tables import blocks
from fairwall.tables.columns import no_column, plain

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import parquet

CSV = (".csv", ".csv.gz")
PARQUET = (".parquet", ".pq")
ROWS_MAX = 10_000_000
BYTES_MAX = 2**31

_START = 1 << 16
_FORMS: tuple[tuple[bytes, str], ...] = (
    (b"PAR1", "Parquet; let its name end in .parquet"),
    (b"\x1f\x8b", "a file compressed by gzip; let its name end in .csv.gz"),
    (b"PK\x03\x04", "an Excel workbook, or a zip archive; save its table as CSV in UTF-8"),
    (b"\xd0\xcf\x11\xe0", "an Excel workbook; save its table as CSV in UTF-8"),
    *((magic, "text in UTF-16; save it as CSV in UTF-8") for magic in (b"\xff\xfe", b"\xfe\xff")),
    *((magic, "a compressed file; unpack it") for magic in (b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")),
    *(
        (magic, "Arrow, ORC or SQLite; write it as CSV or Parquet")
        for magic in (b"ARROW1", b"ORC", b"SQLite format 3\0")
    ),
)
"""First bytes of other kinds of files, the kind, and the remedy."""

_TEXTS: tuple[tuple[bytes, str], ...] = (
    (rb"(?s).?\0", "text in UTF-16, or no text; save it as CSV in UTF-8"),
    (rb"(?i)\s*<(?:!doctype|!--|html|head|body|table|\?xml)", "a page of HTML, or XML; save its table as CSV"),
    (rb"\s*[\[{]\s*[\"\[{\]}]", "JSON; save it as CSV"),
)


def header(path: Path, name: str) -> list[str]:
    """Return the names of a file's columns; ``name`` is the file's name in errors. DataError if it is no table."""
    with _readable(path, name):
        return blocks.header(path, name) if _is_csv(path) else _parquet_header(path)


def read(
    path: Path, name: str, columns: Sequence[str] | None = None, *, as_text: bool | Collection[str] = False
) -> pa.Table:
    """Read a CSV or Parquet file, all columns by default; memory grows with these, not with the file.

    pyarrow is imported here and not above, because it takes longer than the rest of a command's start. DataError if the
    file is no table, lacks a column or has it twice, for the first row that does not fit the header, and as soon as the
    table grows too large. ``as_text`` leaves the fields of a CSV file, or of these columns, as spelt.
    """
    there = header(path, name)
    wanted = there if columns is None else list(dict.fromkeys(columns))
    for column in wanted:
        if column not in there:
            raise DataError(f"{name}: {no_column(column, there)}")
        if there.count(column) > 1:
            raise DataError(f"{name}: column {column!r} occurs more than once; give each a name of its own")
    import pyarrow as pa

    if not isinstance(as_text, bool):
        parts = {spelt: [each for each in wanted if (each in as_text) == spelt] for spelt in (False, True)}
        tables = {spelt: read(path, name, part, as_text=spelt) for spelt, part in parts.items() if part}
        return pa.table({each: tables[each in as_text][each] for each in wanted})

    def kept(rows: int, size: int) -> None:
        if rows > ROWS_MAX:
            raise DataError(f"{name}: has more than {ROWS_MAX:,} rows; take a sample")
        if size > BYTES_MAX:
            raise DataError(f"{name}: takes more than {BYTES_MAX >> 30} GiB; leave out rows or columns")

    with _readable(path, name):
        if not _is_csv(path):
            table = _parquet(path, wanted, kept)
            for place, column in enumerate(wanted):
                kind = table.schema.field(place).type
                if pa.types.is_dictionary(kind) or pa.types.is_string_view(kind):
                    table = table.set_column(place, column, plain(f"{name}: column {column!r}", table.column(place)))
        else:
            table = (blocks.read_text if as_text else blocks.read)(path, name, wanted, kept)
    if not table.num_rows:
        raise DataError(f"{name}: has no rows")
    return table


@dataclass(frozen=True)
class TextColumn:
    """A text column of a Parquet file, read each time instead of held; usable as an Arrow column."""

    path: Path
    name: str
    column: str
    type: pa.DataType
    rows: int

    def __len__(self) -> int:
        return self.rows

    def iterchunks(self) -> Iterator[pa.Array]:
        """Yield the column some rows at a time; DataError as of `read`."""
        from pyarrow import parquet

        with _readable(self.path, self.name), parquet.ParquetFile(self.path) as file:
            for batch in _batches(file, [self.column]):
                yield batch.column(self.column)

    def whole(self) -> pa.ChunkedArray:
        """Return the column in memory."""
        return read(self.path, self.name, [self.column])[self.column]

    def to_pylist(self) -> list[str | None]:
        """Return each row's text."""
        return cast(list[str | None], self.whole().to_pylist())


def column(path: Path, name: str, column: str) -> pa.ChunkedArray | TextColumn:
    """Read one column, see `read`; a text column of a Parquet file is read only when used."""
    from pyarrow import parquet, types

    if not _is_csv(path):
        with _readable(path, name), parquet.ParquetFile(path) as file:
            kind, rows = file.schema_arrow.field(column).type, file.metadata.num_rows
        if types.is_string(kind) or types.is_large_string(kind):
            return TextColumn(path, name, column, kind, rows)
    return read(path, name, [column])[column]


def _batches(file: parquet.ParquetFile, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield some rows at a time; all row groups at once would keep their buffers until the last is read."""
    for group in range(file.num_row_groups):
        yield from file.iter_batches(row_groups=[group], columns=list(columns))


def _is_csv(path: Path) -> bool:
    return path.name.lower().endswith(CSV)


@contextmanager
def _readable(path: Path, name: str) -> Iterator[None]:
    """Raise DataError, in one line, if a file cannot be read in the body."""
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
        if form := _another_form(path):
            raise DataError(f"{name}: {form}")
        yield
    except (pa.ArrowException, OSError, EOFError, UnicodeError) as error:
        # The library's own message may quote a row, and rows are about people.
        reason = getattr(error, "strerror", None) or (
            "it is not well-formed CSV in UTF-8; it may be in Latin-1 (Windows-1252), or cut short; save it in UTF-8"
            if _is_csv(path)
            else "it is not well-formed Parquet; perhaps it is cut short"
        )
        raise DataError(f"{name}: cannot be read; {reason}") from None


def _another_form(path: Path) -> str:
    """Return the apparent kind of a file that contradicts its name, and the remedy; empty if none is apparent."""
    with path.open("rb") as file:
        start = file.read(_START)
    if not start:
        return "is empty"
    if path.name.lower().endswith(PARQUET):
        known = next(
            (form for magic, form in _FORMS if start.startswith(magic)),
            "text or something else, not Parquet; let text end in .csv",
        )
        return "" if start.startswith(b"PAR1") else f"it looks like {known}"
    if path.name.lower().endswith(".gz"):
        if not start.startswith(b"\x1f\x8b"):
            return "it is not compressed by gzip; let its name end in .csv"
        start = b"?"
        with gzip.open(path) as unpacked, contextlib.suppress(EOFError, zlib.error):  # reading reports these
            start = unpacked.read(_START)
        if not start:
            return "is empty"
    looks = [form for magic, form in _FORMS if start.startswith(magic)]
    if looks := looks or [form for pattern, form in _TEXTS if re.match(pattern, start)]:
        return f"it looks like {looks[0]}"
    first, second, *_ = *re.sub(rb'"[^"]*"', b"", start).splitlines(), b"", b""
    for mark, what in ((b";", "semicolons"), (b"\t", "tabs"), (b"|", "bars")):
        if mark in first and b"," not in first:
            points = ", and points for the commas in its numbers" * (re.search(rb"[0-9],[0-9]", second) is not None)
            return f"its fields are parted by {what}; save it with commas between them{points}"
    return ""


def _parquet_header(path: Path) -> list[str]:
    from pyarrow import parquet

    # ParquetFile, because read_table would take folders called "a=1" in the path for columns.
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
    # A column called "a" comes with the columns called "a.b", if there are any.
    return pa.Table.from_batches(batches).select(list(columns)) if batches else pa.table({})
