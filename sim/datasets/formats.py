"""Known formats of users' files that are not plain tables of features.

``source = "lsac:PATH"`` names the format and the path of the user's file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fairwall.tables.errors import DataError
from fairwall.tables.reading import header, read
from sim.datasets.roles import Shipped

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Format:
    """A known format: its default roles, and its reader.

    `read` maps a path, and the file's name in errors, to named columns; other formats raise ``DataError``.
    """

    defaults: Shipped
    read: Callable[[Path, str], pa.Table]


def needed(path: Path, names: tuple[str, ...], name: str, what: str) -> pa.Table:
    """Read some columns of a table; raise `DataError` if one is missing."""
    there = header(path, name)
    missing = [column for column in names if column not in there]
    if missing:
        raise DataError(f"{name}: not {what}; it has no column {', '.join(missing)}")
    return read(path, name, names)


def as_text(columns: pa.Table, names: tuple[str, ...]) -> pa.Table:
    """Return the table with columns of codes turned into text, so that they are categories and not numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for column in names:
        values = columns.column(column)
        if pa.types.is_floating(values.type):
            # Codes in a column with missing ones are read as 1.0, 2.0 and so on.
            values = pc.cast(values, pa.int64(), safe=False)
        columns = columns.set_column(columns.column_names.index(column), column, pc.cast(values, pa.string()))
    return columns
