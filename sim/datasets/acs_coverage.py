"""ACS public coverage: public health insurance, in a table prepared from the American Community Survey.

The file is ``db_ACSCoverage.csv``, 98,739 rows of Texas in 2018, under any name that ends in ``.csv`` or ``.csv.gz``:
the columns of folktables' problem of that name, each with its values renumbered. The table does not document which sex
is 1; it is the men, as nobody with a 1 there has an answer to the question about births (``FER``), and that column is
why a model can recognise a woman of 15 to 50. All but age and schooling are codes without an order.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sim.datasets.formats import Format, as_text, needed
from sim.datasets.roles import Shipped

if TYPE_CHECKING:
    import pyarrow as pa

NUMBERS = ("AGEP", "SCHL")
CODES = ("MAR", "SEX", "DIS", "ESP", "CIT", "MIG", "MIL", "ANC", "NATIVITY", "ESR", "ST", "FER", "RAC1P", "PUBCOV")


def _read(path: Path, name: str) -> pa.Table:
    columns = needed(path, (*NUMBERS, *CODES), name, "the prepared table of public coverage")
    return as_text(columns, CODES)


ACS_COVERAGE = Format(
    Shipped(
        name="acs-coverage",
        label="PUBCOV",
        positive="1",
        groups={"SEX": ("1", "0")},
    ),
    _read,
)
