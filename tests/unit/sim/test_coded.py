"""Tables of codes: small made files, the shipped table, and the paper's own where they are at hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fairwall.tables.people import Roles
from sim.datasets import DataError
from sim.datasets.coded import ADULT_26K, PREPARED, load_coded, stratified_split

SHARED = Path(__file__).parents[4] / "shared" / "data"
FILES = {
    "adult-26k": ("db_adult_processed_26k.csv.gz", 45849, {"gender": 2, "race": 5, "native-country": 41, "age": 74}),
    "acs-coverage": ("db_ACSCoverage.csv.gz", 98739, {"DIS": 2, "AGEP": 50, "SEX": 2, "SCHL": 24}),
    "lsac-coded": ("db_LSAC.csv.gz", 20427, {"race1": 2, "fam_inc": 5, "gender": 2, "fulltime": 2}),
}
ROLES = Roles("group", "a", None, "paid", "yes", drop=("id",))


def own(path: Path, lines: str = "a,yes,30,7\nb,no,20,8\nb,yes,20,9\n") -> str:
    path.write_text("group,paid,age,id\n" + lines)
    return str(path)


def prepared(path: Path, **changed: str) -> str:
    """Write the smallest file in the form of LSAC, with some values of the first row changed."""
    known = PREPARED["lsac-coded"]
    names = [*known.features, known.label]
    rows = [dict.fromkeys(names, "0") | changed, dict.fromkeys(names, "1")]
    path.write_text("\n".join(",".join(line) for line in [names, *(row.values() for row in rows)]) + "\n")
    return f"lsac-coded:{path}"


@pytest.mark.parametrize("name", PREPARED)
def test_the_papers_tables_have_their_rows_and_domains(name: str) -> None:
    file, rows, domains = FILES[name]
    if not (SHARED / file).is_file():
        pytest.skip(f"{file} is not at hand")
    table = load_coded(f"{name}:{SHARED / file}")
    assert table.name == name
    assert table.values.shape == (rows, len(table.columns))
    assert table.values.dtype == np.int32
    assert (table.values.max(0) < table.sizes).all()
    assert {column: dict(zip(table.columns, table.sizes, strict=True))[column] for column in table.sensitive} == domains
    assert set(table.candidates) <= set(table.columns)


def test_the_shipped_adult_is_coded_as_the_papers_and_is_another_table() -> None:
    table = load_coded("adult-coded")
    assert table.columns == ADULT_26K.features
    assert table.sizes == (74, 7, 16, 7, 14, 41, 6, 96, 2, 5)
    assert [str(line) for line in table.left_out] == ["3,620 of 48,842 rows were left out: a value is missing"]
    assert len(table.labels) == 45222
    assert table.labels.mean() == pytest.approx(0.248, abs=0.001)
    # The first row of the file: 39 years old, works 40 hours, male, white, at most 50,000 dollars.
    first = dict(zip(table.columns, table.values[0].tolist(), strict=True))
    assert (first["age"], first["hours-per-week"], first["gender"], first["race"]) == (39 - 17, 39, 1, 4)
    assert table.labels[0] == 0


def test_codes_of_the_shipped_adult_mean_what_they_mean_in_the_papers() -> None:
    file = SHARED / FILES["adult-26k"][0]
    if not file.is_file():
        pytest.skip(f"{file.name} is not at hand")
    ours, theirs = load_coded("adult-coded"), load_coded(f"adult-26k:{file}")
    assert ours.sizes == theirs.sizes
    for column, size in enumerate(ours.sizes):
        shares = [np.bincount(table.values[:, column], minlength=size) / len(table.values) for table in (ours, theirs)]
        assert np.abs(shares[0] - shares[1]).max() < 0.004


def test_a_table_of_ones_own_is_coded_by_rank(tmp_path: Path) -> None:
    table = load_coded(own(tmp_path / "own.csv"), ROLES)
    assert (table.name, table.columns, table.sizes) == ("own.csv", ("group", "age"), (2, 2))
    assert table.values.tolist() == [[1, 1], [0, 0], [0, 0]]
    assert table.labels.tolist() == [1, 0, 1]
    assert table.sensitive == ("group",)
    assert table.having(("age", "group")).sensitive == ("group", "age")


def test_domains_are_those_of_the_whole_file(tmp_path: Path) -> None:
    path = own(tmp_path / "own.csv", "a,yes,30,7\nb,no,20,8\nc,no,10,9\n")
    table = load_coded(path, Roles("group", "a", "b", "paid", "yes", drop=("id",)))
    assert table.sizes == (2, 3)
    assert table.values.tolist() == [[1, 2], [0, 1]]
    assert len(table.left_out) == 1


def test_what_is_no_code_is_refused_by_its_column(tmp_path: Path) -> None:
    for value in ["-1", "0.5", "200", "x", ""]:
        source = prepared(tmp_path / "codes.csv", fam_inc=value)
        with pytest.raises(DataError, match="column 'fam_inc' ") as refused:
            load_coded(source)
        assert str(refused.value).startswith(source)


def test_groups_and_labels_are_both_there_and_0_or_1(tmp_path: Path) -> None:
    for column in ["race1", "pass_bar"]:
        for value in ["2", "1"]:
            with pytest.raises(DataError, match=f"column '{column}' must hold 0 and 1, and nothing else"):
                load_coded(prepared(tmp_path / "codes.csv", **{column: value}))


def test_what_cannot_be_loaded_is_refused_in_one_line(tmp_path: Path) -> None:
    path = own(tmp_path / "own.csv")
    many = own(tmp_path / "many.csv", "".join(f"{'ab'[n % 2]},{'yes' if n % 3 else 'no'},{n},0\n" for n in range(201)))
    refusals = [
        ("lsac-coded", None, "say where the file is, as lsac-coded:PATH"),
        (f"lsac-coded:{path}", None, "not the paper's prepared table of LSAC; it has no column fam_inc"),
        (f"lsac-coded:{tmp_path / 'none.csv'}", None, "no such file"),
        ("adult-coded", ROLES, "its columns have their parts already"),
        ("nothing", ROLES, "neither a table of codes"),
        (path, None, "a table of your own has no defaults"),
        (many, ROLES, "column 'age' has 201 different values, more than 200; put it in drop"),
    ]
    for source, roles, reason in refusals:
        with pytest.raises(DataError, match=reason) as refused:
            load_coded(source, roles)
        assert str(refused.value).isprintable()


def test_sensitive_columns_are_features_and_the_protected_one_is_among_them(tmp_path: Path) -> None:
    table = load_coded(own(tmp_path / "own.csv"), ROLES)
    with pytest.raises(DataError, match="no feature 'paid'; its features are group, age"):
        table.having(("group", "paid"))
    with pytest.raises(DataError, match="protected column 'group' must be sensitive"):
        table.having(("age",))


# By [LD]'s code: numpy.random.seed(seed), randint(1, 6) others, and choice(candidates, replace=False).
DRAWN = {
    0: {"ugpa", "fulltime", "gender", "lsat", "fam_inc"},
    2: {"ugpa"},
    3: {"lsat", "fulltime", "ugpa"},
    10: {"fulltime", "gender"},
    12: {"fam_inc", "ugpa", "gender", "fulltime"},
}


def test_sensitive_columns_are_drawn_as_the_papers_code_draws_them(tmp_path: Path) -> None:
    table = load_coded(prepared(tmp_path / "codes.csv"))
    for seed, others in DRAWN.items():
        drawn = table.drawing(2, 6, seed).sensitive
        assert set(drawn) == {"race1", *others}
        assert list(drawn) == [column for column in table.columns if column in drawn]
    assert {len(table.drawing(2, 6, seed).sensitive) for seed in range(40)} == {2, 3, 4, 5, 6}
    assert {table.drawing(2, 2, seed, ("gender",)).sensitive for seed in range(5)} == {("gender", "race1")}


def test_what_cannot_be_drawn_is_refused(tmp_path: Path) -> None:
    table = load_coded(prepared(tmp_path / "codes.csv"))
    with pytest.raises(DataError, match="2 candidates and the protected column are too few to draw 4"):
        table.drawing(2, 4, 0, ("gender", "lsat"))
    with pytest.raises(DataError, match="no feature 'pass_bar'"):
        table.drawing(2, 3, 0, ("gender", "pass_bar"))
    with pytest.raises(DataError, match="'race1' is always drawn"):
        table.drawing(2, 3, 0, ("gender", "race1"))
    with pytest.raises(DataError, match="has no candidates of its own"):
        load_coded(own(tmp_path / "own.csv"), ROLES).drawing(2, 2, 0)


def test_a_split_keeps_the_labels_shares_and_every_row() -> None:
    labels = (np.arange(1000) % 4 == 0).astype(np.uint8)
    train, test = stratified_split(labels, seed=3)
    assert sorted([*train, *test]) == list(range(1000))
    assert (len(test), labels[test].sum()) == (200, 50)
    assert not np.array_equal(test, stratified_split(labels, seed=4)[1])
    with pytest.raises(DataError, match="too few"):
        stratified_split(np.array([0, 0, 1], np.uint8), seed=0)
