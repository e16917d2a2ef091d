"""The shipped tables, a user's own tables as files, and the synthetic ones."""

from __future__ import annotations

import csv
import datetime
import gzip
import hashlib
import io
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from sim import datasets
from sim.datasets import DataError, EncodedRows, load
from sim.datasets.synthetic import synthetic

FOLDER = Path(datasets.__file__).parent
README = (FOLDER / "README.md").read_text()

COMPAS_COLUMNS = (
    "sex,age,age_cat,race,juv_fel_count,juv_misd_count,juv_other_count,priors_count,"
    "c_charge_degree,decile_score,score_text,two_year_recid"
)

OWN: Mapping[str, Any] = {"protected": "group", "advantaged": "a", "label": "y", "positive": "1"}
BOTH = OWN | {"disadvantaged": ("b", "c")}
ROWS = [
    {"group": "a", "y": 1, "x": 1.0, "colour": "red"},
    {"group": "a", "y": 0, "x": 2.0, "colour": "blue"},
    {"group": "b", "y": 1, "x": 3.0, "colour": "red"},
    {"group": "b", "y": 0, "x": 6.0, "colour": None},
    {"group": "c", "y": 0, "x": 8.0, "colour": "green"},
]

Write = Callable[..., str]


def rows_of(name: str) -> list[list[str]]:
    with gzip.open(FOLDER / f"{name}.csv.gz", "rt", newline="") as file:
        return list(csv.reader(file))


def columns_of(table: EncodedRows) -> list[str]:
    """The columns behind the features, in their order."""
    return list(dict.fromkeys(name.partition("=")[0] for name in table.feature_names))


def feature(table: EncodedRows, name: str) -> np.ndarray:
    return table.features[:, table.feature_names.index(name)]


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    content = text.getvalue().encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return str(path)


def write_parquet(path: Path, rows: Sequence[Mapping[str, Any]]) -> str:
    parquet.write_table(pa.Table.from_pylist(list(rows)), path)
    return str(path)


@pytest.fixture(params=["people.csv", "people.csv.gz", "people.parquet"])
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Write:
    path = tmp_path / request.param
    write = write_parquet if path.suffix == ".parquet" else write_csv
    return lambda rows: write(path, rows)


@pytest.fixture
def as_csv(tmp_path: Path) -> Write:
    return lambda rows: write_csv(tmp_path / "people.csv", rows)


@pytest.fixture
def as_parquet(tmp_path: Path) -> Write:
    return lambda rows: write_parquet(tmp_path / "people.parquet", rows)


def refusal(source: str, **asked: Any) -> str:
    """The one line with which a table is refused."""
    with pytest.raises(DataError) as caught:
        load(source, **asked)
    line = str(caught.value)
    assert line.isprintable(), "an error is one line"
    assert line.startswith(f"{source}: ")
    return line.removeprefix(f"{source}: ")


# The shipped tables.


@pytest.mark.parametrize(("name", "rows"), [("adult", 48_842), ("compas", 6_172), ("german", 1_000)])
def test_a_shipped_table_is_the_one_the_readme_describes(name: str, rows: int) -> None:
    path = FOLDER / f"{name}.csv.gz"
    stated = re.search(rf"`{path.name}` \| ([\d,]+) \| `([0-9a-f]{{64}})`", README)
    assert stated
    header, *lines = rows_of(name)
    assert len(lines) == rows == int(stated[1].replace(",", ""))
    assert hashlib.sha256(path.read_bytes()).hexdigest() == stated[2]
    assert f"Columns: {', '.join(f'`{column}`' for column in header)}." in " ".join(README.split())


def test_a_shipped_table_holds_no_time_of_packing() -> None:
    for name in datasets.SHIPPED:
        head = (FOLDER / f"{name}.csv.gz").read_bytes()[:8]
        assert head[3] == 0, "no file name"
        assert head[4:8] == bytes(4), "no time"


@pytest.mark.parametrize(
    ("name", "protected", "advantaged", "disadvantaged", "features", "favourable"),
    [
        ("adult", "race", 41_762, 4_685, 102, (0.2540, 0.1208)),
        ("compas", "race", 2_103, 3_175, 12, (0.6091, 0.4769)),
        ("compas", "sex", 1_175, 4_997, 16, None),
        ("german", "sex", 690, 310, 57, (0.7232, 0.6484)),
    ],
)
def test_a_shipped_table_has_its_groups_and_no_protected_feature(
    name: str,
    protected: str,
    advantaged: int,
    disadvantaged: int,
    features: int,
    favourable: tuple[float, float] | None,
) -> None:
    table = load(name, protected=protected)
    assert table.name == name
    if favourable is not None:
        rates = [table.labels[table.protected == group].mean() for group in (1, 0)]
        assert rates == pytest.approx(favourable, abs=5e-5)
    assert not table.scored
    assert (int(table.protected.sum()), int((1 - table.protected).sum())) == (advantaged, disadvantaged)
    assert table.features.shape == (advantaged + disadvantaged, features)
    assert table.features.shape == (len(table.labels), len(table.feature_names))
    assert (table.features.dtype, table.labels.dtype, table.protected.dtype) == (np.float64, np.uint8, np.uint8)
    assert protected not in columns_of(table)
    membership = table.protected[:, np.newaxis]
    assert (table.features != membership).any(axis=0).all()
    assert (table.features != 1 - membership).any(axis=0).all()


@pytest.mark.parametrize("name", ["compas", "german"])
def test_numbers_are_standardised_and_categories_one_hot(name: str) -> None:
    table = load(name)
    for column in columns_of(table):
        parts = [i for i, part in enumerate(table.feature_names) if part.partition("=")[0] == column]
        block = table.features[:, parts]
        if table.feature_names[parts[0]] == column:
            assert block.mean() == pytest.approx(0, abs=1e-9)
            assert block.std() == pytest.approx(1)
        else:
            assert set(np.unique(block)) <= {0.0, 1.0}
            assert (block.sum(axis=1) == 1).all()
            assert [table.feature_names[i] for i in parts] == sorted(table.feature_names[i] for i in parts)


def test_adult_keeps_every_attribute_and_its_missing_values() -> None:
    header, *rows = rows_of("adult")
    assert {row[-1] for row in rows} == {"<=50K", ">50K"}
    table = load("adult")
    assert columns_of(table) == [column for column in header if column not in ("race", "income")]
    assert {"workclass=?", "occupation=?", "native-country=?"} <= set(table.feature_names)


def test_compas_has_these_columns_and_nothing_that_names_a_person() -> None:
    header, *rows = rows_of("compas")
    assert ",".join(header) == COMPAS_COLUMNS
    telling = re.compile(r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}/\d{1,2}/\d{2,4}|\d{1,2}:\d{2}|\d{4,}|\d[A-Z]|[A-Z]\d")
    assert not [cell for row in rows for cell in row if telling.search(cell)]
    # Few distinct words, all of them categories, leave no room for names.
    words = {cell for row in rows for cell in row if not cell.isdigit()}
    assert words == {
        *("Male", "Female", "25 - 45", "Greater than 45", "Less than 25", "F", "M", "Low", "Medium", "High"),
        *("African-American", "Asian", "Caucasian", "Hispanic", "Native American", "Other"),
    }


def test_compas_never_learns_from_the_other_models_score() -> None:
    for protected, advantaged, others in [
        ("race", None, None),
        ("sex", None, None),
        ("age_cat", "25 - 45", "Less than 25"),
    ]:
        columns = columns_of(load("compas", protected=protected, advantaged=advantaged, disadvantaged=others))
        assert not {"decile_score", "score_text", "two_year_recid", protected} & set(columns)


def test_german_has_sex_or_personal_status_never_both() -> None:
    by_sex = columns_of(load("german"))
    assert not {"sex", "personal_status"} & set(by_sex)
    by_origin = columns_of(load("german", protected="foreign_worker", advantaged="A202"))
    assert "personal_status" in by_origin
    assert "sex" not in by_origin
    of_sex = columns_of(load("german", protected="foreign_worker", advantaged="A202", label="sex", positive="male"))
    assert not {"sex", "personal_status"} & set(of_sex)
    by_status = columns_of(load("german", protected="personal_status", advantaged="A93", disadvantaged=("A91", "A92")))
    assert not {"sex", "personal_status"} & set(by_status)


def test_the_groups_of_a_shipped_table_are_a_pair() -> None:
    assert "race' has besides 'White' several others; its values are Amer-" in refusal("adult", advantaged="White")
    table = load("adult", disadvantaged="Other")
    assert int((1 - table.protected).sum()) == 406
    assert int(table.protected.sum()) == 41_762


def test_another_label_makes_the_usual_one_a_feature() -> None:
    table = load("compas", label="c_charge_degree", positive="M")
    assert "two_year_recid" in table.feature_names
    assert "c_charge_degree" not in columns_of(table)


# A user's own table.


def test_a_file_is_read_the_same_in_every_format(written: Write) -> None:
    table = load(written(ROWS), **OWN, disadvantaged="b")
    assert table.name.startswith("people.")
    assert table.protected.tolist() == [1, 1, 0, 0]
    assert table.labels.tolist() == [1, 0, 1, 0]
    assert table.feature_names == ("x", "colour=?", "colour=blue", "colour=red")
    np.testing.assert_allclose(feature(table, "x"), (np.array([1, 2, 3, 6]) - 3) / np.sqrt(3.5))
    assert feature(table, "colour=red").tolist() == [1, 0, 1, 0]
    assert feature(table, "colour=?").tolist() == [0, 0, 0, 1]


def test_several_values_may_be_disadvantaged_together(as_csv: Write) -> None:
    assert load(as_csv(ROWS), **BOTH).protected.tolist() == [1, 1, 0, 0, 0]


def test_whose_group_is_missing_is_in_none(as_csv: Write) -> None:
    rows = [*ROWS, {"group": None, "y": 1, "x": 0.0, "colour": "red"}]
    assert load(as_csv(rows), **BOTH).protected.tolist() == [1, 1, 0, 0, 0]


def test_a_third_label_needs_the_others_named_or_stands_for_none(as_csv: Write) -> None:
    source = as_csv([row | {"y": "late" if row["group"] == "c" else str(row["y"])} for row in ROWS])
    assert "besides '1' several others; its values are 0, 1, late; say in negative" in refusal(source, **BOTH)
    assert load(source, **BOTH, negative=("0", "late")).labels.tolist() == [1, 0, 1, 0, 0]
    assert load(source, **OWN, disadvantaged="b", missing_values=("late",)).labels.tolist() == [1, 0, 1, 0]


def test_dropped_columns_are_no_features(as_csv: Write) -> None:
    assert columns_of(load(as_csv(ROWS), **BOTH, drop=["colour"])) == ["x"]


@pytest.mark.parametrize("ones", [(1, 0), (1.0, 0.0), (True, False), ("1", "0")])
def test_values_compare_as_strings_whatever_their_type(as_parquet: Write, ones: tuple[Any, Any]) -> None:
    yes, no = ones
    rows = [row | {"group": yes if row["group"] == "a" else no, "y": yes if row["y"] else no} for row in ROWS]
    table = load(as_parquet(rows), protected="group", advantaged="1", label="y", positive="1")
    assert table.protected.tolist() == [1, 1, 0, 0, 0]
    assert table.labels.tolist() == [1, 0, 1, 0, 0]


@pytest.mark.parametrize("spelt", ["true", "True", "1"])
def test_a_boolean_has_three_spellings(written: Write, spelt: str) -> None:
    rows = [row | {"group": row["group"] == "a"} for row in ROWS]
    table = load(written(rows), protected="group", advantaged=spelt, label="y", positive="1")
    assert table.protected.tolist() == [1, 1, 0, 0, 0]


def test_numbers_in_text_keep_their_spelling(as_parquet: Write) -> None:
    rows = [row | {"group": {"a": "01", "b": "1", "c": "1.0"}[row["group"]]} for row in ROWS]
    assert load(as_parquet(rows), **OWN | {"advantaged": "01"}).protected.tolist() == [1, 1, 0, 0, 0]


def test_a_copy_of_the_protected_column_is_no_feature(written: Write) -> None:
    copies: dict[str, Callable[[Mapping[str, Any]], Any]] = {
        "same": lambda row: row["group"],
        "upper": lambda row: row["group"].upper(),
        "flag": lambda row: row["group"] != "a",
        "bit": lambda row: int(row["group"] == "a"),
        "number": lambda row: -2.5 if row["group"] == "a" else 7.0,
        "code": lambda row: ord(row["group"]),
    }
    rows = [row | {name: copy(row) for name, copy in copies.items()} for row in ROWS]
    assert columns_of(load(written(rows), **BOTH)) == ["x", "colour"]


def test_other_types_are_categories_or_numbers(tmp_path: Path) -> None:
    four = {
        "group": list("aabb"),
        "y": [1, 0, 1, 0],
        "day": pa.array([datetime.date(2020, 1, day) for day in (1, 2, 1, 2)]),
        "coded": pa.array(["u", "v", "u", "v"]).dictionary_encode(),
        "large": pa.array(["u", "v", "u", "v"], pa.large_string()),
        "price": pa.array([1, 2, 3, 5], pa.decimal128(5, 1)),
        "small": pa.array([1, 2, 3, 5], pa.int8()),
        "flag": [True, False, None, True],
        "blank": pa.nulls(4),
        "same": [3, 3, 3, 3],
    }
    path = tmp_path / "people.parquet"
    parquet.write_table(pa.table(four), path)
    table = load(str(path), **OWN)
    assert table.feature_names == (
        *("day=2020-01-01", "day=2020-01-02", "coded=u", "coded=v", "large=u", "large=v", "price", "small"),
        *("flag=?", "flag=false", "flag=true", "blank=?", "same"),
    )
    np.testing.assert_allclose(feature(table, "price"), feature(table, "small"))
    assert (feature(table, "same") == 0).all()


@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.sampled_from([0, 1]),
            st.floats(allow_nan=False, allow_infinity=False),
            st.one_of(st.none(), st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=4)),
        ),
        max_size=30,
    )
)
def test_any_table_is_encoded_row_by_row(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[Any, ...]]
) -> None:
    # The first four rows see to it that there are two groups and two outcomes, and x and word tell no group apart.
    drawn = [("a", 0, 0.0, "w"), ("a", 1, 0.0, "w"), ("b", 0, 0.0, "w"), ("b", 1, 0.0, "w"), *drawn]
    rows = [dict(zip(("group", "y", "x", "word"), row, strict=True)) for row in drawn]
    table = load(write_parquet(tmp_path_factory.mktemp("any") / "people.parquet", rows), **OWN, disadvantaged="b")
    kept = [row for row in rows if row["group"] in "ab"]
    assert table.protected.tolist() == [int(row["group"] == "a") for row in kept]
    assert table.labels.tolist() == [row["y"] for row in kept]
    words = ["?" if row["word"] is None else row["word"] for row in kept]
    assert table.feature_names == ("x", *(f"word={word}" for word in sorted(set(words))))
    assert [table.feature_names[1 + place] for place in table.features[:, 1:].argmax(axis=1)] == [
        f"word={word}" for word in words
    ]
    numbers = np.array([row["x"] for row in kept])
    if (numbers == 0).all():
        assert (table.features[:, 0] == 0).all()
    else:
        assert table.features[:, 0].mean() == pytest.approx(0, abs=1e-9)
        assert table.features[:, 0].std() == pytest.approx(1)
        order = np.argsort(numbers, kind="stable")
        assert (np.diff(table.features[order, 0]) >= 0).all()


# What is refused, and how.


@pytest.mark.check
@pytest.mark.parametrize(
    ("asked", "line"),
    [
        (
            {"protected": "rce"},
            "no column 'rce'; its columns are age, workclass, fnlwgt, education, education-num, marital-status, "
            "occupation, relationship, race, sex, capital-gain, capital-loss, hours-per-week, native-country, income",
        ),
        (
            {"advantaged": "Wite"},
            "column 'race' has no value 'Wite'; "
            "its values are Amer-Indian-Eskimo, Asian-Pac-Islander, Black, Other, White",
        ),
        (
            {"protected": "relationship"},
            "column 'relationship' needs an advantaged value; "
            "its values are Husband, Not-in-family, Other-relative, Own-child, Unmarried, Wife",
        ),
        ({"label": "sex"}, "column 'sex' needs a positive value; its values are Female, Male"),
        (
            {"protected": "age", "advantaged": "old"},
            "column 'age' has no value 'old'; it has 74 different values in 48,842 rows",
        ),
        (
            {"label": "race", "positive": "White"},
            "column 'race' cannot be both protected and the label",
        ),
    ],
)
def test_a_shipped_table_says_what_would_be_right(asked: dict[str, str], line: str) -> None:
    assert refusal("adult", **asked) == line


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        ({"protected": None}, "a table of your own has no defaults; give protected"),
        (
            {"protected": None, "advantaged": None, "label": None, "positive": None},
            "a table of your own has no defaults; give protected, advantaged, label, positive",
        ),
        ({"label": "z"}, "no column 'z'; its columns are group, y, x, colour"),
        ({"disadvantaged": "z"}, "column 'group' has no value 'z'; it has 3 different values in 5 rows"),
        ({"disadvantaged": "a"}, "column 'group' cannot have 'a' both advantaged and disadvantaged"),
        ({"drop": ["x", "colour"]}, "no column is left as a feature besides group, y and dropped ones"),
        ({"positive": "2"}, "column 'y' has no value '2'; its values are 0, 1"),
    ],
)
def test_a_users_table_says_what_would_be_right(as_csv: Write, asked: dict[str, Any], line: str) -> None:
    assert refusal(as_csv(ROWS), **BOTH | asked) == line


def test_a_missing_file_is_named_as_missing_whatever_else_was_asked() -> None:
    for name in ("mine.csv", "mine.csv.gz", "mine.parquet", "folder/mine.csv", "mine.txt"):
        for asked in ({}, OWN):
            assert refusal(name, **asked) == "no such file"


def test_a_table_that_is_spelled_wrong_is_recognised() -> None:
    for name, near in (("adlut", "adult"), ("Adult", "adult"), ("germn", "german")):
        assert refusal(name) == f"neither a shipped table (adult, compas, german) nor a file; did you mean {near}?"


def test_one_group_alone_is_refused(as_csv: Write) -> None:
    source = as_csv([row for row in ROWS if row["group"] == "a"])
    assert refusal(source, **OWN) == "column 'group' has no value but 'a'; the disadvantaged group is empty"


def test_one_outcome_alone_is_refused(as_csv: Write) -> None:
    rows = [row | {"y": int(row["group"] == "c")} for row in ROWS]
    assert (
        refusal(as_csv(rows), **OWN, disadvantaged="b")
        == "column 'y' is '1' in no row of the two groups; a label needs both outcomes"
    )


def test_a_missing_label_is_refused_where_it_matters(written: Write) -> None:
    rows = [row | {"y": None if row["group"] == "c" else row["y"]} for row in ROWS]
    source = written(rows)
    assert len(load(source, **OWN, disadvantaged="b").labels) == 4
    assert refusal(source, **BOTH) == "column 'y' has no value in 1 rows; every row needs a label"


def test_a_missing_number_is_refused_where_it_matters(written: Write) -> None:
    rows = [row | {"x": None if row["group"] == "c" else row["x"]} for row in ROWS]
    source = written(rows)
    assert len(load(source, **OWN, disadvantaged="b").labels) == 4
    line = "column 'x' has no finite number in 1 of 5 rows; fill them in or put it in drop"
    assert refusal(source, **BOTH) == line


@pytest.mark.parametrize(("distinct", "accepted"), [(200, True), (201, False)])
def test_a_category_has_at_most_200_values(as_csv: Write, distinct: int, accepted: bool) -> None:
    rows = [ROWS[i % 4] | {"street": f"street {i % distinct}"} for i in range(3 * distinct)]
    source = as_csv(rows)
    if accepted:
        assert len(load(source, **OWN).feature_names) == 204
    else:
        line = "column 'street' has 201 different values, more than the 200 that a category may have; put it in drop"
        assert refusal(source, **OWN) == line


def test_a_column_of_another_type_is_refused_unless_dropped(as_parquet: Write) -> None:
    source = as_parquet([row | {"list": [1, 2]} for row in ROWS])
    assert refusal(source, **BOTH).startswith("column 'list' holds neither UTF-8 text nor numbers but list<")
    assert columns_of(load(source, **BOTH, drop=["list"])) == ["x", "colour"]


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("people.csv", "", "is empty"),
        ("people.csv.gz", "group,y\na,1\n", "it is not compressed by gzip; let its name end in .csv"),
        ("people.parquet", "group,y\na,1\n", "it looks like text or something else, not Parquet; let text end in .csv"),
        ("people.csv", "group,y,x\n", "has no rows"),
        ("people.csv", "group,y,y\na,1,2\n", "column 'y' occurs more than once; give each a name of its own"),
        (
            "people.csv",
            "group,y,x\na,1,2\nJane Doe,1990-01-01\n",
            "row 3 has 2 fields where the header has 3",
        ),
        (
            "people.txt",
            "group,y\na,1\n",
            "neither CSV nor Parquet; its name must end in .csv, .csv.gz, .parquet, .pq",
        ),
    ],
)
def test_a_file_that_is_no_table_is_refused(tmp_path: Path, name: str, content: str, line: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    assert refusal(str(path), **OWN) == line


def test_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes("group,y,x\na,1,é\nb,0,é\n".encode("latin-1"))
    line = "column 'x' holds bytes that are no text in UTF-8, perhaps Latin-1 (Windows-1252): save it in UTF-8"
    assert refusal(str(path), **OWN | {"drop": []}) == line
    path.write_bytes("grüppe,y\na,1\n".encode("latin-1"))
    assert refusal(str(path), **OWN).startswith(
        "cannot be read; it is not well-formed CSV in UTF-8; it may be in Latin"
    )


def test_no_error_quotes_the_people(as_csv: Write) -> None:
    rows = [row | {"name": f"Person {i}"} for i, row in enumerate(ROWS)]
    source = as_csv(rows)
    for asked in ({"protected": "name"}, {"label": "name", "positive": "x"}, {"protected": "x"}):
        line = refusal(source, **BOTH | asked)
        assert "Person" not in line
        assert "different values in 5 rows" in line


# The synthetic tables.


@settings(deadline=None)
@given(st.data(), st.integers(2, 300), st.sampled_from(["uniform", "beta(2,5)", "beta( 0.5 , 1 )"]))
def test_a_synthetic_table_has_exactly_its_groups(data: st.DataObject, n: int, law: str) -> None:
    n0 = data.draw(st.integers(1, n - 1))
    table = synthetic(n, n0, law, np.random.default_rng(7))
    assert table.scored
    assert table.feature_names == ("score",)
    assert table.features.shape == (n, 1)
    assert ((table.features >= 0) & (table.features <= 1)).all()
    assert int((table.protected == 0).sum()) == n0
    assert len(table.protected) == len(table.labels) == n
    assert set(table.labels.tolist()) <= {0, 1}
    again = synthetic(n, n0, law, np.random.default_rng(7))
    np.testing.assert_array_equal(again.features, table.features)
    np.testing.assert_array_equal(again.protected, table.protected)


@pytest.mark.parametrize(("law", "mean", "variance"), [("uniform", 1 / 2, 1 / 12), ("beta(2,6)", 1 / 4, 1 / 48)])
def test_synthetic_scores_follow_their_law_and_are_calibrated(law: str, mean: float, variance: float) -> None:
    table = synthetic(200_000, 50_000, law, np.random.default_rng(1))
    scores = table.features[:, 0]
    for group in (0, 1):
        members = table.protected == group
        assert scores[members].mean() == pytest.approx(mean, abs=0.005)
        assert scores[members].var() == pytest.approx(variance, rel=0.03)
        assert table.labels[members].mean() == pytest.approx(mean, abs=0.01)
    for low in (0.1, 0.3, 0.5):
        close = (scores > low) & (scores < low + 0.1)
        assert table.labels[close].mean() == pytest.approx(scores[close].mean(), abs=0.02)
    # Places are random: every tenth of the table holds its share of the group.
    assert table.protected.reshape(10, -1).mean(axis=1) == pytest.approx(0.75, abs=0.02)


def test_an_unknown_law_is_named() -> None:
    for law in ("gauss", "beta", "beta(1)", "beta(0,1)", "Uniform", "beta(1,nan)"):
        with pytest.raises(DataError) as caught:
            synthetic(10, 5, law, np.random.default_rng(0))
        assert str(caught.value) == (
            f"synthetic: unknown law of scores {law!r}; it must be uniform or beta(a,b) with a and b above 0"
        )


def test_a_synthetic_table_needs_two_groups() -> None:
    for n, n0 in ((10, 0), (10, 10), (10, -1), (0, 0)):
        with pytest.raises(DataError, match=rf"^synthetic: .* n0 = {n0} "):
            synthetic(n, n0, "uniform", np.random.default_rng(0))
