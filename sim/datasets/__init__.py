"""The tables that games are played on: three that are shipped, and a user's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fairwall.tables.errors import DataError
from fairwall.tables.reading import read
from sim.datasets.adult import ADULT
from sim.datasets.compas import COMPAS
from sim.datasets.encoding import encode
from sim.datasets.german import GERMAN
from sim.datasets.roles import Asked, own
from sim.datasets.table import Table

__all__ = ["SHIPPED", "DataError", "Table", "load"]

SHIPPED = {shipped.name: shipped for shipped in (ADULT, COMPAS, GERMAN)}


def load(
    source: str,
    *,
    protected: str | None = None,
    advantaged: str | None = None,
    disadvantaged: str | None = None,
    label: str | None = None,
    positive: str | None = None,
    drop: Sequence[str] = (),
) -> Table:
    """Load a shipped table or a file under the public encoding.

    Text and boolean columns are categories, numbers are numbers. The protected column is never a feature, nor is a
    column that by itself tells the two groups apart. Values compare as strings: 1, 1.0 and true are named "1", "1"
    and "true" (or "1").

    Parameters
    ----------
    source
        "adult", "compas", "german", or the path of a CSV (also ``.csv.gz``) or Parquet file. A file has no
        defaults but for ``disadvantaged`` and ``drop``.
    protected
        The column that tells the groups apart.
    advantaged, disadvantaged
        Its values for the two groups; other rows are left out. Without ``disadvantaged`` everyone else is in that
        group whose value is not missing. The shipped tables' groups are a pair: they hold where ``advantaged`` is
        not given.
    label, positive
        The outcome column and its favourable value.
    drop
        Columns that are not to be features.

    Raises
    ------
    DataError
        In one line, what is wrong with the file, a column or a value, and what would be right.
    """
    asked = Asked(protected, advantaged, disadvantaged, label, positive, tuple(drop))
    if source in SHIPPED:
        shipped = SHIPPED[source]
        return encode(source, read(shipped.path, source), shipped.roles(asked))
    path = Path(source)
    if not path.suffix and not path.exists():
        raise DataError(f"{source}: neither a shipped table ({', '.join(SHIPPED)}) nor a file")
    table = encode(source, read(path, source), own(source, asked))
    # An error says where the file is; a report says only what it is called.
    return replace(table, name=path.name)
