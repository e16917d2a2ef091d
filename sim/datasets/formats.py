"""Known formats of users' files that are not plain tables of features.

``source = "lsac:PATH"`` names the format and the path of the user's file.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fairwall.errors import DataError
from fairwall.tables.reading import header, read
from fairwall.tables.values import OTHERS
from sim.datasets.shipped import Shipped

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


_ACS_NUMBERS = ("AGEP", "SCHL")
_ACS_CODES = ("MAR", "SEX", "DIS", "ESP", "CIT", "MIG", "MIL", "ANC", "NATIVITY", "ESR", "ST", "FER", "RAC1P", "PUBCOV")


def _read_acs_coverage(path: Path, name: str) -> pa.Table:
    columns = needed(path, (*_ACS_NUMBERS, *_ACS_CODES), name, "the prepared table of public coverage")
    return as_text(columns, _ACS_CODES)


ACS_COVERAGE = Format(
    Shipped(
        name="acs-coverage",
        label="PUBCOV",
        positive="1",
        groups={"SEX": ("1", "0")},
    ),
    _read_acs_coverage,
)
"""ACS public coverage: public health insurance, in a table prepared from the American Community Survey.

The file is ``db_ACSCoverage.csv``, 98,739 rows of Texas in 2018, under any name that ends in ``.csv`` or ``.csv.gz``:
the columns of folktables' problem of that name, each with its values renumbered. The table does not document which sex
is 1; it is the men, as nobody with a 1 there has an answer to the question about births (``FER``), and that column is
why a model can recognise a woman of 15 to 50. All but age and schooling are codes without an order.
"""


def _read_acs_income(path: Path, name: str) -> pa.Table:
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
    _read_acs_income,
)
"""ACS Income: incomes above 50,000 dollars in the American Community Survey (Ding et al., NeurIPS 2021).

The file is a person file of the survey's public use microdata, such as ``psam_p06.csv`` for California, which
folktables downloads: ``ACSDataSource("2018", "1-Year", "person").get_data(["CA"], download=True)``. The people
included, the features and the label follow folktables' definition of the problem. Its ten features stay numbers, as in
the papers that use them, though occupation and place of birth are codes.
"""


WORDS = 500
PER_GENDER = 7000


def _read_bias_in_bios(path: Path, name: str) -> pa.Table:
    import pyarrow as pa

    # Imported here: scikit-learn takes seconds to load.
    from sklearn.feature_extraction.text import TfidfVectorizer

    people = needed(path, ("hard_text", "profession", "gender"), name, "biographies").drop_null()
    gender = people.column("gender").to_numpy()
    rng = np.random.default_rng(0)
    drawn = [rng.permutation(np.flatnonzero(gender == value))[:PER_GENDER] for value in np.unique(gender)]
    people = people.take(pa.array(np.sort(np.concatenate(drawn))))
    vectorizer = TfidfVectorizer(max_features=WORDS, sublinear_tf=True)
    weights = vectorizer.fit_transform(people.column("hard_text").to_pylist()).toarray()
    # No word can be mistaken for a column with a role.
    words = {f"word {word}": weights[:, place] for place, word in enumerate(vectorizer.get_feature_names_out())}
    parts = {part: people.column(part) for part in ("profession", "gender")}
    return pa.table({**words, **parts})


BIAS_IN_BIOS = Format(
    Shipped(
        name="bias-in-bios",
        label="profession",
        positive="21",
        negative=OTHERS,
        groups={"gender": ("0", "1")},
    ),
    _read_bias_in_bios,
)
"""Bias in Bios: short biographies, each with an occupation and a gender (De-Arteaga et al., FAT* 2019).

The file is the Parquet file of one part of the collection, with columns ``hard_text`` (the biography without its first
sentence), ``profession`` (0 to 27 in alphabetical order; 21 is professor, the most common one) and ``gender`` (0 is
male). A biography becomes the weights of the 500 most common words: term frequencies, as 1 + log of the count, times
inverse document frequencies, each biography scaled to norm 1. `PER_GENDER` people of each gender are drawn, always the
same ones, as the paper keeps 5,000 to train on and 2,000 to test with.

The texts are about real people. Words that are common in thousands of biographies reveal little about one; a file with
few biographies would have names among its 500.
"""


_LSAC_COLUMNS = ("lsat", "ugpa", "fam_inc", "age", "gender", "race1", "cluster", "fulltime", "pass_bar")
_LSAC_CODES = ("cluster", "fulltime")


def _read_lsac(path: Path, name: str) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = needed(path, _LSAC_COLUMNS, name, "the bar passage study").drop_null()
    if not columns.num_rows:
        raise DataError(f"{name}: no row has a value in all of {', '.join(_LSAC_COLUMNS)}")
    white = pc.equal(columns.column("race1"), "white")
    return as_text(columns, _LSAC_CODES).append_column(
        "race", pc.if_else(white, pa.scalar("white"), pa.scalar("other"))
    )


LSAC = Format(
    Shipped(
        name="lsac",
        label="pass_bar",
        positive="1",
        groups={"race": ("white", "other"), "gender": ("male", "female")},
        # `race` is white against the rest; `race1` divides the rest further.
        derived={"race": "race1"},
    ),
    _read_lsac,
)
"""LSAC: passing the bar examination in the Law School Admission Council's bar passage study (Wightman, 1998).

The file is ``bar_pass_prediction.csv``, 22,407 rows, under any name that ends in ``.csv`` or ``.csv.gz``. The features
are what was known of a student on entering law school. Later facts (grades there, the bar itself, another model's
prediction of it) and repetitions of another column are not features. Rows that lack a value are left out: 21,977
remain.
"""


SIDE = 32
YOUNG = 30
PLACES = tuple(f"{y},{x} {colour}" for y in range(SIDE) for x in range(SIDE) for colour in ("red", "green", "blue"))
_FACE_NAME = re.compile(r"(\d{1,3})_([01])_([0-4])_\d+\.jpg(\.chip\.jpg)?", re.ASCII | re.IGNORECASE)


def _read_utkface(path: Path, name: str) -> pa.Table:
    import pyarrow as pa

    try:
        from PIL import Image
    except ModuleNotFoundError as missing:
        raise DataError(f"{name}: images need Pillow: pip install 'fairwall[images]'") from missing
    if not path.is_dir():
        raise DataError(f"{name}: no such folder: name the one with UTKFace's images")
    faces = [(file, parts) for file in sorted(path.iterdir()) if (parts := _FACE_NAME.fullmatch(file.name))]
    if not faces:
        raise DataError(f"{name}: has no file named AGE_GENDER_RACE_TIME.jpg")
    pixels = np.empty((len(faces), SIDE * SIDE * 3))
    for row, (file, _) in enumerate(faces):
        try:
            with Image.open(file) as image:
                small = image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
        except OSError:
            raise DataError(f"{name}: {row + 1:,} of {len(faces):,} images cannot be read; it is no JPEG") from None
        pixels[row] = np.asarray(small, dtype=np.float64).ravel() / 255
    ages, genders, races = (np.array([int(parts[place]) for _, parts in faces]) for place in (1, 2, 3))
    return pa.table(
        {
            **{place: pixels[:, column] for column, place in enumerate(PLACES)},
            "gender": np.where(genders == 0, "male", "female"),
            "race": np.where(races == 0, "white", "other"),
            "age": np.where(ages <= YOUNG, "young", "old"),
        }
    )


UTKFACE = Format(
    Shipped(
        name="utkface",
        label="age",
        positive="young",
        groups={"race": ("white", "other"), "gender": ("male", "female")},
    ),
    _read_utkface,
)
"""UTKFace: face images whose file names give age, gender and race (Zhang, Song and Qi, CVPR 2017).

``PATH`` is a folder of JPEG files ``AGE_GENDER_RACE_TIME.jpg`` (or ``.jpg.chip.jpg``, where faces are cropped): age in
years, gender 0 for male, race 0 for white (1 Black, 2 Asian, 3 Indian, 4 other). Files of other names, of which the
collection has a few, are skipped. An image becomes 32 x 32 pixels of three colours each, in the order row, column,
colour. The label is ``young`` for an age of 30 at most: the paper's limit is lost.
"""
