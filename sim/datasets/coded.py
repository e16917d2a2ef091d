"""Tables whose columns are all codes, as local differential privacy needs them: 0 up to the column's domain size.

==========================  =====================================================================================
source                      table
==========================  =====================================================================================
``adult-26k:PATH``          [LD]'s ``db_adult_processed_26k.csv``: income above 26,000 dollars, 45,849 rows of the
                            reconstructed Adult
``acs-coverage:PATH``       [LD]'s ``db_ACSCoverage.csv``, 98,739 rows: the file that ``acs-coverage:PATH`` also is
                            as a table of features (`sim.datasets.formats`)
``lsac-coded:PATH``         [LD]'s ``db_LSAC.csv``, 20,427 rows; ``lsac:PATH`` is the raw file, with other rows
``adult-coded``             the shipped Adult, coded as the first of these
any other path              a user's own table
==========================  =====================================================================================

``adult-coded`` has the same ten columns, codes and domain sizes as ``adult-26k``, and is another table: the label is an
income above 50,000 dollars (25% of the people, not 52%), since the shipped table lacks the income itself; of its 48,842
rows it keeps the 45,222 without a missing value, 627 fewer than [LD]; and the order of rows differs, so no seed splits
the two tables in the same way.

[LD]: Arcolezi, Makhlouf, Palamidessi, DBSec 2023. The parameters of LightGBM are those of its code.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Bytes
from fairwall.errors import DataError
from fairwall.learning.forest import Boosting
from fairwall.tables.columns import Categories, TypedColumn, names_of
from fairwall.tables.people import LeftOut, Roles, check_roles, select
from fairwall.tables.reading import header, read
from sim.datasets.formats import needed
from sim.datasets.shipped import ADULT

if TYPE_CHECKING:
    import pyarrow as pa

MOST_CODES = 200
"""Most codes of a column, as many as a category of a table of features may have."""


@dataclass(frozen=True, eq=False)
class CodedTable:
    """N people as codes, the rows of the file left out, by reason, and LightGBM's parameters.

    Attributes
    ----------
    columns : the names of the c features, the protected one among them, in the order of the file.
    values : (N, c), each in [0, size of its column).
    sizes : the columns' domain sizes, public: those of the whole file, whichever people are dealt.
    labels : (N,); 1 is the favourable outcome, which ``label`` names.
    protected : the column of the groups; its code 1 is the advantaged one.
    sensitive : the columns to be kept secret, the protected one among them, in the order of the file.
    candidates : the other columns from which [LD]'s appendix draws sensitive ones, in the order of its code.
    """

    name: str
    columns: tuple[str, ...]
    values: NDArray[np.int32]
    sizes: tuple[int, ...]
    labels: Bytes
    label: str
    protected: str
    sensitive: tuple[str, ...]
    boosting: Boosting
    candidates: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    def having(self, sensitive: tuple[str, ...]) -> CodedTable:
        """Return the table with other sensitive columns, features among which must be the protected column."""
        for column in sensitive:
            if column not in self.columns:
                raise DataError(f"{self.name}: no feature {column!r}; its features are {names_of(self.columns)}")
        if self.protected not in sensitive:
            raise DataError(f"{self.name}: the protected column {self.protected!r} must be sensitive as well")
        return replace(self, sensitive=tuple(column for column in self.columns if column in sensitive))

    def drawing(self, least: int, most: int, seed: int, candidates: tuple[str, ...] = ()) -> CodedTable:
        """Return the table with randomly drawn sensitive columns: the protected one and candidates.

        The number of columns is uniform from ``least``, at least 2, to ``most``, and so are the candidates given the
        number. It is the draw of [LD]'s code for its appendix, made by the same generator: a seed, from 0 and below
        2**32, gives the same columns there. The order of candidates, by default the table's own, matters to the draw.
        Raises `DataError` if there are too few candidates, or one is not allowed.
        """
        pool = candidates or self.candidates
        if not pool:
            raise DataError(f"{self.name}: has no candidates of its own to draw sensitive columns from; name them")
        self.having((*pool, self.protected))
        if self.protected in pool:
            raise DataError(f"{self.name}: the protected column {self.protected!r} is always drawn, and no candidate")
        for column in pool:
            if self.sizes[self.columns.index(column)] < 2:
                raise DataError(f"{self.name}: candidate {column!r} has one value, which is no secret")
        if most > len(pool) + 1:
            raise DataError(f"{self.name}: {len(pool)} candidates and the protected column are too few to draw {most}")
        rng = np.random.RandomState(seed)  # the legacy generator, whose stream [LD] drew from
        others = rng.randint(least - 1, most)
        return self.having((self.protected, *rng.choice(pool, size=others, replace=False).tolist()))


@dataclass(frozen=True)
class Prepared:
    """A file of [LD]'s: its name in errors, its feature columns in the file's order, and the columns' roles."""

    what: str
    features: tuple[str, ...]
    label: str
    protected: str
    sensitive: tuple[str, ...]
    candidates: tuple[str, ...]
    boosting: Boosting


ADULT_26K = Prepared(
    what="the paper's prepared table of Adult",
    features=(
        *("age", "workclass", "education", "marital-status", "occupation", "native-country", "relationship"),
        *("hours-per-week", "gender", "race"),
    ),
    label="income",
    protected="gender",
    sensitive=("age", "native-country", "gender", "race"),
    candidates=("race", "native-country", "age", "hours-per-week", "education"),
    boosting=Boosting(depth=38, rate=0.02255696731716368, trees=1100),
)

PREPARED = {
    "adult-26k": ADULT_26K,
    "acs-coverage": Prepared(
        what="the paper's prepared table of public coverage",
        features=(
            *("AGEP", "SCHL", "MAR", "SEX", "DIS", "ESP", "CIT", "MIG", "MIL", "ANC", "NATIVITY", "ESR", "ST", "FER"),
            "RAC1P",
        ),
        label="PUBCOV",
        protected="DIS",
        sensitive=("AGEP", "SCHL", "SEX", "DIS"),
        candidates=("AGEP", "SEX", "SCHL", "RAC1P", "NATIVITY"),
        boosting=Boosting(depth=47, rate=0.20243400958078808, trees=1300),
    ),
    "lsac-coded": Prepared(
        what="the paper's prepared table of LSAC",
        features=("fam_inc", "gender", "fulltime", "race1", "lsat", "ugpa"),
        label="pass_bar",
        protected="race1",
        sensitive=("fam_inc", "gender", "fulltime", "race1"),
        candidates=("fam_inc", "gender", "fulltime", "lsat", "ugpa"),
        boosting=Boosting(depth=9, rate=0.18177994587365698, trees=1100),
    ),
}

_DEFAULTS = Boosting(depth=-1, rate=0.1, trees=100)


def load_coded(source: str, roles: Roles | None = None) -> CodedTable:
    """Load a table of codes from a source of the module's table.

    A user's own table, and no other, needs ``roles``. Its values become codes by rank: text as it is sorted, numbers by
    size; the protected column 1 for the advantaged and 0 for the disadvantaged. That column alone is sensitive, until
    `CodedTable.having` changes it, and LightGBM's parameters are its own defaults. A `DataError` of one line names what
    is wrong with the file, a column or a value.
    """
    name, _, where = source.partition(":")
    known = source == "adult-coded" or name in PREPARED
    if known and roles is not None:
        raise DataError(f"{source}: its columns have their parts already; leave them out")
    if source == "adult-coded":
        return _adult()
    if name in PREPARED:
        if not where:
            raise DataError(f"{source}: say where the file is, as {name}:PATH")
        return _prepared(name, source, Path(where))
    path = Path(source)
    if not path.suffix and not path.exists():
        raise DataError(f"{source}: neither a table of codes (adult-coded, {', '.join(PREPARED)}) nor a file")
    there = header(path, source)
    if roles is None:
        raise DataError(f"{source}: a table of your own has no defaults; say what its columns are")
    check_roles(source, there, roles)
    kept = [column for column in there if column not in roles.drop]
    columns = read(path, source, kept, as_text={roles.protected, roles.label})
    return replace(_ranked(source, columns, replace(roles, drop=())), name=path.name)


def stratified_split(labels: Bytes, seed: int, test_share: float = 0.2) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the shuffled row numbers for training and for testing, split as in [LD]'s code by a seed below 2**32.

    Each label has the same share of both parts. Raises `DataError` if a part would lack a label.
    """
    from sklearn.model_selection import train_test_split

    try:
        train, test = train_test_split(np.arange(len(labels)), test_size=test_share, stratify=labels, random_state=seed)
    except ValueError:
        raise DataError(f"{len(labels):,} rows are too few to have both labels in both parts") from None
    return train, test


def _prepared(name: str, source: str, path: Path) -> CodedTable:
    known = PREPARED[name]
    columns = needed(path, (*known.features, known.label), source, known.what)
    codes = [_codes(source, column, columns) for column in (*known.features, known.label)]
    labels = codes.pop()
    for column, values in ((known.protected, codes[known.features.index(known.protected)]), (known.label, labels)):
        if set(np.unique(values)) != {0, 1}:
            raise DataError(f"{source}: column {column!r} must hold 0 and 1, and nothing else")
    return CodedTable(
        name=name,
        columns=known.features,
        values=np.stack(codes, axis=1),
        sizes=tuple(int(values.max()) + 1 for values in codes),
        labels=labels.astype(np.uint8),
        label=known.label,
        protected=known.protected,
        sensitive=known.sensitive,
        boosting=known.boosting,
        candidates=known.candidates,
    )


def _codes(source: str, column: str, columns: pa.Table) -> NDArray[np.int32]:
    """Return a column's codes."""
    found = TypedColumn.of(source, column, columns)
    if found.numeric:
        numbers = found.numbers()
        if (np.rint(numbers) == numbers).all() and numbers.min() >= 0 and numbers.max() < MOST_CODES:
            return numbers.astype(np.int32)
    raise DataError(f"{found.where} must hold whole numbers from 0 to {MOST_CODES - 1}")


def _adult() -> CodedTable:
    """Return the shipped table coded as [LD] codes the reconstructed one: by rank, without incomplete rows."""
    import pyarrow.compute as pc

    columns = read(ADULT.path, ADULT.name).rename_columns({"sex": "gender"}).select((*ADULT_26K.features, "income"))
    rows = columns.num_rows
    for column in ("workclass", "occupation", "native-country"):
        columns = columns.filter(pc.not_equal(columns.column(column), "?"))
    roles = Roles("gender", "Male", "Female", ADULT.label, ADULT.positive)
    return replace(
        _ranked("adult-coded", columns, roles),
        sensitive=ADULT_26K.sensitive,
        candidates=ADULT_26K.candidates,
        boosting=ADULT_26K.boosting,
        left_out=(LeftOut(rows - columns.num_rows, rows, "a value is missing"),),
    )


def _ranked(source: str, columns: pa.Table, roles: Roles) -> CodedTable:
    """Code every column by the ranks of its values in the whole file, then select the rows of the two groups."""
    people = select(source, columns, roles)
    names = tuple(column for column in columns.column_names if column != roles.label)
    codes, sizes = [], []
    for name in names:
        if name == roles.protected:
            codes.append(people.protected.astype(np.int32))
            sizes.append(2)
            continue
        column = TypedColumn.of(source, name, columns)
        if column.numeric:
            distinct, ranks = np.unique(column.numbers(), return_inverse=True)
            size = len(distinct)
        else:
            categories = Categories.of(column)
            size, ranks = len(categories.values), categories.codes
        if size > MOST_CODES:
            raise DataError(f"{column.where} has {size:,} different values, more than {MOST_CODES}; put it in drop")
        codes.append(ranks[people.kept].astype(np.int32))
        sizes.append(size)
    return CodedTable(
        name=source,
        columns=names,
        values=np.stack(codes, axis=1),
        sizes=tuple(sizes),
        labels=people.labels,
        label=roles.label,
        protected=roles.protected,
        sensitive=(roles.protected,),
        boosting=_DEFAULTS,
        left_out=people.left_out,
    )
