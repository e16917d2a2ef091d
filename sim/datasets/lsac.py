"""LSAC: passing the bar examination in the Law School Admission Council's bar passage study (Wightman, 1998).

The file is ``bar_pass_prediction.csv``, 22,407 rows, under any name that ends in ``.csv`` or ``.csv.gz``. The features
are what was known of a student on entering law school. Later facts (grades there, the bar itself, another model's
prediction of it) and repetitions of another column are not features. Rows that lack a value are left out: 21,977
remain.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fairwall.tables.errors import DataError
from sim.datasets.formats import Format, as_text, needed
from sim.datasets.roles import Shipped

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ("lsat", "ugpa", "fam_inc", "age", "gender", "race1", "cluster", "fulltime", "pass_bar")
CODES = ("cluster", "fulltime")


def _read(path: Path, name: str) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = needed(path, COLUMNS, name, "the bar passage study").drop_null()
    if not columns.num_rows:
        raise DataError(f"{name}: no row has a value in all of {', '.join(COLUMNS)}")
    white = pc.equal(columns.column("race1"), "white")
    return as_text(columns, CODES).append_column("race", pc.if_else(white, pa.scalar("white"), pa.scalar("other")))


LSAC = Format(
    Shipped(
        name="lsac",
        label="pass_bar",
        positive="1",
        groups={"race": ("white", "other"), "gender": ("male", "female")},
        # `race` is white against the rest; `race1` divides the rest further.
        derived={"race": "race1"},
    ),
    _read,
)
