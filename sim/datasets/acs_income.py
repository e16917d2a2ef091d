"""ACS Income: incomes above 50,000 dollars in the American Community Survey (Ding et al., NeurIPS 2021).

The file is a person file of the survey's public use microdata, such as ``psam_p06.csv`` for California, which
folktables downloads: ``ACSDataSource("2018", "1-Year", "person").get_data(["CA"], download=True)``. The people
included, the features and the label follow folktables' definition of the problem. Its ten features stay numbers, as in
the papers that use them, though occupation and place of birth are codes.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fairwall.tables.errors import DataError
from sim.datasets.formats import Format, needed
from sim.datasets.roles import Shipped

if TYPE_CHECKING:
    import pyarrow as pa


def _read(path: Path, name: str) -> pa.Table:
    import pyarrow as pa

    try:
        from folktables import ACSIncome
    except ModuleNotFoundError as missing:
        raise DataError(f"{name}: ACS Income needs folktables: pip install 'fairwall[acs]'") from missing
    # The last two decide which people are included.
    used = tuple(dict.fromkeys((*ACSIncome.features, ACSIncome.target, "PWGTP")))
    people = needed(path, used, name, "a person file of the American Community Survey").to_pandas()
    features, labels, _ = ACSIncome.df_to_numpy(people)
    if not len(labels):
        raise DataError(f"{name}: nobody in it is older than 16, works and earns more than 100 dollars")
    columns = {column: features[:, place] for place, column in enumerate(ACSIncome.features)}
    return pa.table({**columns, "income": [">50K" if above else "<=50K" for above in labels]})


ACS_INCOME = Format(
    Shipped(
        name="acs-income",
        label="income",
        positive=">50K",
        groups={"SEX": ("1", "2")},
    ),
    _read,
)
