"""From a file to named columns."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairwall.tables.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

CSV = (".csv", ".csv.gz")
PARQUET = (".parquet", ".pq")


def read(path: Path, name: str) -> pa.Table:
    """Read a CSV or Parquet file; ``name`` is what an error calls it.

    pyarrow is imported here and not above: it takes longer than everything else a command line does at its start.
    """
    import pyarrow as pa

    if not path.is_file():
        raise DataError(f"{name}: no such file")
    if path.name.lower().endswith(CSV):
        form, reader = "CSV in UTF-8", _csv
    elif path.name.lower().endswith(PARQUET):
        form, reader = "Parquet", _parquet
    else:
        raise DataError(f"{name}: neither CSV nor Parquet; its name must end in {', '.join(CSV + PARQUET)}")
    try:
        table = reader(path, name)
        names = Counter(table.column_names)
    except (pa.ArrowException, OSError, UnicodeError) as error:
        # The library's own words may quote a row, and rows are about people.
        reason = getattr(error, "strerror", None) or f"it is not well-formed {form}"
        raise DataError(f"{name}: cannot be read; {reason}") from None
    twice = [column for column, count in names.items() if count > 1]
    if twice:
        raise DataError(f"{name}: column {twice[0]!r} occurs more than once; columns need names of their own")
    if not table.num_rows:
        raise DataError(f"{name}: has no rows")
    return table


def _csv(path: Path, name: str) -> pa.Table:
    from pyarrow import csv

    ragged: list[Any] = []

    def refuse(row: Any) -> str:
        ragged.append(row)
        return "error"

    try:
        return csv.read_csv(
            path,
            # One thread, for the numbers of bad rows; several gain nothing on tables of this size.
            read_options=csv.ReadOptions(use_threads=False),
            parse_options=csv.ParseOptions(newlines_in_values=True, invalid_row_handler=refuse),
            convert_options=csv.ConvertOptions(strings_can_be_null=True),
        )
    except ValueError:
        if not ragged:
            raise
        row = ragged[0]
        raise DataError(
            f"{name}: row {row.number} has {row.actual_columns} fields where the header has {row.expected_columns}"
        ) from None


def _parquet(path: Path, name: str) -> pa.Table:  # noqa: ARG001 - both readers are called alike
    from pyarrow import parquet

    # ParquetFile rather than read_table, which would take folders called "a=1" on the way for columns.
    with parquet.ParquetFile(path) as file:
        return file.read()
