"""The same table means the same however it is written, and what nobody said is asked for, never guessed."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from datetime import date, datetime
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from fairwall import toml
from fairwall.client.onnx_classes import check_classes
from fairwall.errors import DataError
from fairwall.tables.people import Roles, select
from fairwall.tables.reading import read
from fairwall.tables.values import favourable, is_missing, is_unknown, meaning
from fairwall.tools.classifiers import predictions_of
from fairwall.tools.pytest_plugin import AuditFixture

ROLES = Roles("g", "a", None, "y", "1")

SPELLINGS = (
    *("", " ", "?", ".", "-", "NA", "N/A", "nan", "NaN", "None", "null", "<NA>", "NaT", "nil", "\u00a0", "#N/A"),
    *(
        "0",
        "1",
        "1.0",
        "01",
        "0101",
        "101",
        "+1",
        "-1",
        "-0",
        "1e3",
        "1000",
        "1_000",
        "1,000",
        "1,5",
        "1.5",
        ".5",
        "0.50",
    ),
    *("9007199254740993", "9007199254740992", "\uff11", "inf", "Infinity", "+", "--", "\u22121"),
    *("True", "true", "FALSE", "False", "yes", "no", "Yes", " Male", "Male", "Male\u00a0", "\ufeffMale"),
    *(
        "caf\u00e9",
        "cafe\u0301",
        "\u00df",
        "ss",
        "a;b",
        'say "a"',
        "2024-05-01",
        "2024-05-01 00:00:00",
        "2024-05-01T10:30",
    ),
    *("unknown", "Race Not Available", "prefer not to say", ">50K", ">50K."),
)

Rows = Sequence[tuple[str, str]]


def as_csv(path: Path, rows: Rows) -> Path:
    with path.with_suffix(".csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("g", "y", "x"), *((*row, "1") for row in rows)])
    return path.with_suffix(".csv")


def as_arrow(path: Path, g: pa.Array, y: pa.Array) -> Path:
    parquet.write_table(pa.table({"g": g, "y": y, "x": pa.array([1] * len(g))}), path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


def texts(kind: pa.DataType, *, encoded: bool = False) -> Callable[[Path, Rows], Path]:
    def write(path: Path, rows: Rows) -> Path:
        g, y = (pa.array(column, pa.string()).cast(kind) for column in zip(*rows, strict=True))
        return as_arrow(path, g.dictionary_encode() if encoded else g, y.dictionary_encode() if encoded else y)

    return write


def as_typed(path: Path, rows: Rows) -> Path:
    """Give each column the type that all of its values have."""
    return as_arrow(path, *(typed(column) for column in zip(*rows, strict=True)))


def typed(column: Sequence[str]) -> pa.Array:
    meant = [None if is_missing(each) else meaning(each) for each in column]
    there = [each for each in meant if each is not None]
    for kind, read_as in (
        (pa.int64(), int),
        (pa.float64(), exact),
        (pa.bool_(), boolean),
        (pa.timestamp("ns"), moment),
    ):
        try:
            given = {each: read_as(each) for each in there}
        except ValueError:
            continue
        if all(meaning(str(value)) == each for each, value in given.items()):
            return pa.array([each if each is None else given[each] for each in meant], kind)
    return pa.array(column, pa.string())


def exact(text: str) -> float:
    if not re.fullmatch("[-0-9.e+]+|-?inf", text):
        raise ValueError(text)
    return float(text)


def boolean(text: str) -> bool:
    return {"true": True, "false": False}[text] if text in ("true", "false") else bool(int("no boolean"))


def moment(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if meaning(str(found)) == text else datetime.fromisoformat("none")


def of_pandas(path: Path, rows: Rows) -> Path:
    pd.DataFrame(rows, columns=["g", "y"]).to_parquet(path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


def of_pandas_before_3(path: Path, rows: Rows) -> Path:
    pd.DataFrame(rows, columns=["g", "y"], dtype=object).to_parquet(path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


def of_polars(path: Path, rows: Rows) -> Path:
    import polars

    polars.DataFrame(list(rows), schema=["g", "y"], orient="row").write_parquet(path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


FORMS: list[Callable[[Path, Rows], Path]] = [
    *(as_csv, texts(pa.string()), texts(pa.large_string()), texts(pa.string_view()), texts(pa.binary())),
    texts(pa.large_binary()),
    *(texts(pa.string(), encoded=True), as_typed, of_pandas, of_pandas_before_3, of_polars),
]


def found(path: Path, roles: Roles) -> Any:
    """Who is kept, in which group and with which label; or that it is refused."""
    try:
        people = select("t", read(path, "t", ["g", "y"], as_text=True), roles)
    except DataError:
        return "refused"
    return people.kept.tolist(), people.protected.tolist(), people.labels.tolist(), people.told


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_table_has_the_same_groups_and_labels_in_every_form(data: st.DataObject) -> None:
    few = data.draw(st.lists(st.sampled_from(SPELLINGS), min_size=2, max_size=4, unique=True))
    outcomes = data.draw(
        st.lists(st.sampled_from(SPELLINGS), min_size=2, max_size=3, unique=True) | st.just(["0", "1"])
    )
    rows = data.draw(st.lists(st.tuples(st.sampled_from(few), st.sampled_from(outcomes)), min_size=4, max_size=12))
    named = data.draw(st.sampled_from([None, few[1], tuple(few[1:])]))
    negative = data.draw(st.sampled_from([None, outcomes[1]]))
    roles = Roles("g", few[0], named, "y", outcomes[0], negative=negative)
    with tempfile.TemporaryDirectory() as folder:
        forms = [write(Path(folder) / f"t{place}", rows) for place, write in enumerate(FORMS)]
        # A type of its own has no place for a text that stands for no value and is named all the same.
        named_none = any(is_missing(each) for each in (*roles.named("g"), *roles.named("y")))
        told = [
            found(path, roles) for path, write in zip(forms, FORMS, strict=True) if not named_none or write != as_typed
        ]
    assert all(each == told[0] for each in told[1:])
    if told[0] != "refused":
        assert sum(told[0][1]) == sum(meaning(g) == meaning(few[0]) for g, _ in rows)


def test_there_are_sixty_spellings_and_two_that_mean_one_thing_are_one() -> None:
    assert len(set(SPELLINGS)) >= 60
    for one, other in product(("1", "1.0", "+1", "1e0", " 1", "1\u00a0", "\ufeff1"), repeat=2):
        assert meaning(one) == meaning(other)
    apart = (
        "101",
        "0101",
        "\uff11\uff10\uff11",
        "1_01",
        "9007199254740993",
        "9007199254740992",
        "yes",
        "Yes",
        "\u00df",
        "ss",
    )
    assert len(set(map(meaning, apart))) == len(apart)
    assert meaning("caf\u00e9") == meaning("cafe\u0301")
    assert meaning(str(date(2024, 5, 1))) == meaning("2024-05-01T00:00") == meaning("2024-05-01 00:00:00.000")


# A2. Which class is good.


class Classifier:
    """Decides for its first class, with the probability .9."""

    def __init__(self, *classes: object) -> None:
        self.classes_ = np.array(classes)

    def predict(self, X: Any) -> Any:
        return self.classes_[np.zeros(len(X), int)]

    def predict_proba(self, X: Any) -> Any:
        return np.tile([0.9, 0.1], (len(X), 1))


@pytest.mark.parametrize(
    "classes", [("approved", "denied"), (1, 2), ("no", "yes"), (-1, 1), ("0", "1"), ("False", "True")]
)
def test_a2_which_class_is_favourable_is_asked(classes: tuple[object, object]) -> None:
    for response in ("decisions", "probabilities"):
        with pytest.raises(ValueError, match=re.escape(f"which class is favourable, '{classes[0]}' or '{classes[1]}'")):
            predictions_of(Classifier(*classes), [0], response)
        first, second = (predictions_of(Classifier(*classes), [0], response, positive=each)[0] for each in classes)
        assert (first, second) == ((1, 0) if response == "decisions" else (0.9, 0.1))
    with pytest.raises(ValueError, match="positive must be one of the classes"):
        predictions_of(Classifier(*classes), [0], positive="good")


@pytest.mark.parametrize("classes", [(0, 1), (False, True), (0.0, 1.0)])
def test_a2_zero_and_one_need_no_word(classes: tuple[object, object]) -> None:
    assert predictions_of(Classifier(*classes), [0]).tolist() == [0]
    assert favourable(classes, classes[0]) == 0


class Service:
    """Keeps what was asked, in the place of an `AuditClient`."""

    def terms(self) -> Any:
        return SimpleNamespace(rows=None)

    def ask(self, predictions: Any, *_: Any, **__: Any) -> None:
        self.asked = list(predictions)

    def count_by_group(self, predictions: Any, *_: Any, **__: Any) -> None:
        self.asked = list(predictions)


def test_a2_the_fixture_of_pytest_asks_too() -> None:
    service: Any = Service()
    denied = Classifier("approved", "denied")
    for ask in ("ask", "by_group"):
        with pytest.raises(ValueError, match="which class is favourable"):
            getattr(AuditFixture(service, None, 1.0), ask)("sp", denied, [0])
        getattr(AuditFixture(service, None, 1.0, positive="approved"), ask)("sp", denied, [0])
        assert service.asked == [1.0]


def part(number: int, content: bytes) -> bytes:
    """A field of a protobuf message."""
    return bytes([number << 3 | 2, len(content)]) + content


def onnx(*labels: str | int) -> bytes:
    """A model whose one node is a classifier."""
    name, number = ("classlabels_strings", 9) if isinstance(labels[0], str) else ("classlabels_ints", 8)
    told = [part(9, each.encode()) if isinstance(each, str) else bytes([number << 3, each]) for each in labels]
    return part(7, part(1, part(5, part(1, name.encode()) + b"".join(told))))


def test_a2_a_model_that_is_handed_over_says_which_class_is_favourable() -> None:
    check_classes(onnx(0, 1))
    with pytest.raises(ValueError, match="which class is favourable, 'approved' or 'denied'"):
        check_classes(onnx("approved", "denied"))
    with pytest.raises(ValueError, match="second score counts, and is of 'denied'"):
        check_classes(onnx("approved", "denied"), "approved")
    with pytest.raises(ValueError, match="which class is favourable, '1' or '2'"):
        check_classes(onnx(1, 2))
    check_classes(onnx(1, 2), 2)
    check_classes(b"no model \xff\xff\xff")


# A3. A third value.


@pytest.mark.parametrize("third", [">50K.", "9", "unknown", "maybe"])
def test_a3_a_third_label_is_refused_and_listed(tmp_path: Path, third: str) -> None:
    rows = [("a", ">50K"), ("a", "<=50K"), ("b", ">50K"), ("b", "<=50K"), ("a", third), ("b", third)]
    roles = Roles("g", "a", None, "y", ">50K")
    for write in FORMS:
        table = read(write(tmp_path / "t", rows), "t", ["g", "y"], as_text=True)
        with pytest.raises(DataError, match=rf"besides '>50K' several others; .*{re.escape(third)}.* say in negative"):
            select("t", table, roles)


@pytest.mark.parametrize("none", [".", "None", "?", "NA", "nan", "", "\u00a0", "--", "n.a."])
def test_a3_a_value_that_stands_for_none_is_in_no_group_and_is_no_label(tmp_path: Path, none: str) -> None:
    rows = [("a", "1"), ("a", "0"), ("b", "1"), ("b", "0"), (none, "0")]
    for write in FORMS:
        assert found(write(tmp_path / "t", rows), ROLES)[0] == [True] * 4 + [False]
        assert found(write(tmp_path / "u", [*rows[:4], ("a", none)]), ROLES) == "refused"
        own = Roles("g", "a", None, "y", "1", missing_values=("9",))
        assert found(write(tmp_path / "v", [*rows[:4], ("9", "0")]), own)[0] == [True] * 4 + [False]


def test_a3_a_third_group_is_refused_and_several_may_be_named(tmp_path: Path) -> None:
    rows = [(group, label) for group in ("a", "b", "c") for label in ("0", "1")]
    path = as_csv(tmp_path / "t", rows)
    assert found(path, ROLES) == "refused"
    assert found(path, Roles("g", "a", ("b", "c"), "y", "1"))[1] == [1, 1, 0, 0, 0, 0]
    assert found(path, Roles("g", "a", "b", "y", "1"))[0] == [True] * 4 + [False] * 2


def test_a3_what_is_named_is_a_value_even_if_it_reads_as_none(tmp_path: Path) -> None:
    rows = [("a", "+"), ("a", "-"), ("NA", "+"), ("NA", "-"), ("", "-")]
    for write in (as_csv, texts(pa.string())):
        path = write(tmp_path / "t", rows)
        assert found(path, Roles("g", "a", "NA", "y", "+", negative="-"))[:2] == ([True] * 4 + [False], [1, 1, 0, 0])
        assert found(path, Roles("g", "a", "NA", "y", "+")) == "refused"


# A4. As the file spells it.


@pytest.mark.parametrize("value", ["0101", "True", "1.0", "1e3", "007", "2024-05-01", "+1"])
def test_a4_a_value_matches_as_the_file_spells_it(tmp_path: Path, value: str) -> None:
    rows = [(value, "1"), (value, "0"), ("other", "1"), ("other", "0")]
    for write in FORMS:
        assert found(write(tmp_path / "t", rows), Roles("g", value, None, "y", "1"))[1] == [1, 1, 0, 0]


def test_a4_zeros_that_a_library_lost_are_said(tmp_path: Path) -> None:
    path = as_arrow(tmp_path / "t", pa.array([101, 101, 7, 7]), pa.array([1, 0, 1, 0]))
    with pytest.raises(DataError, match=r"no value '0101'; .*it has 101, a whole number, without the zeros before it"):
        select("t", read(path, "t"), Roles("g", "0101", None, "y", "1"))


# A5. Unknown is not a race.


@pytest.mark.parametrize(
    "text",
    [
        *("unknown", "Race Not Available", "not specified", "Not reported", "prefer not to say", "Declined to answer"),
        *("undisclosed", "Refused", "I do not wish to answer", "Unknown/Not Reported", "NA", "?", "No response"),
    ],
)
def test_a5_a_value_that_is_not_known_is_never_a_group_unless_it_is_named(tmp_path: Path, text: str) -> None:
    assert is_unknown(text)
    rows = [("a", "1"), ("a", "0"), (text, "1"), (text, "0")]
    for write in FORMS:
        assert found(write(tmp_path / "t", rows), ROLES) == "refused"


def test_a5_names_of_groups_are_known() -> None:
    for text in (
        "White",
        "Other",
        "Not Hispanic or Latino",
        "female",
        "not married",
        "no",
        "Two or more races",
        "known",
    ):
        assert not is_unknown(text)


# A9. Files.


def workbook() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    return content.getvalue()


PLAIN = b"g,y\na,1\nb,0\n"
FILES = {
    "semicolons": ("t.csv", b"g;y;z\na;1;1,5\n", "parted by semicolons; save it with commas .* points for the commas"),
    "tabs": ("t.csv", b"g\ty\na\t1\n", "parted by tabs"),
    "a blank in the header": ("t.csv", b"id, g,y\n1,a,1\n", "no column 'g'; .*' g' is spelt otherwise, white space"),
    "UTF-16": ("t.csv", PLAIN.decode().encode("utf-16"), "text in UTF-16; save it as CSV in UTF-8"),
    "Latin-1": ("t.csv", "g,y\n\u00e9,1\nb,0\n".encode("latin-1"), "may be in Latin-1"),
    "gzip by another name": ("t.csv", gzip.compress(PLAIN), "a file compressed by gzip; let its name end in .csv.gz"),
    "no gzip": ("t.csv.gz", PLAIN, "not compressed by gzip; let its name end in .csv"),
    "half of gzip": ("t.csv.gz", gzip.compress(PLAIN * 999)[:40], "or cut short"),
    "empty": ("t.csv", b"", "is empty"),
    "a workbook": ("t.csv", workbook(), "an Excel workbook, or a zip archive"),
    "a page": ("t.csv", b"<!DOCTYPE html><html></html>", "a page of HTML"),
    "JSON": ("t.csv", json.dumps([{"g": "a", "y": 1}]).encode(), "looks like JSON"),
    "Parquet by another name": ("t.csv", b"PAR1....PAR1", "Parquet; let its name end in .parquet"),
    "text called Parquet": ("t.parquet", PLAIN, "not Parquet; let text end in .csv"),
}


@pytest.mark.parametrize("name", FILES)
def test_a9_a_file_of_another_form_is_said(tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]) -> None:
    file, content, why = FILES[name]
    (tmp_path / file).write_bytes(content)
    with pytest.raises(DataError, match=why) as caught:
        select("t", read(tmp_path / file, "t", ["g", "y"], as_text=True), ROLES)
    assert "drop" not in str(caught.value)
    assert capfd.readouterr().err == ""


def test_a9_a_byte_order_mark_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"\xef\xbb\xbf" + PLAIN)
    assert found(tmp_path / "t.csv", ROLES)[1] == [1, 0]
    (tmp_path / "t.toml").write_bytes(b"\xef\xbb\xbfa = 1\n")
    assert toml.read(tmp_path / "t.toml") == {"a": 1}


def test_a9_a_column_that_occurs_twice_is_refused_where_it_is_used(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"g,y,z,z\na,1,1,1\nb,0,2,2\n")
    assert found(tmp_path / "t.csv", ROLES)[1] == [1, 0]
    with pytest.raises(DataError, match="column 'z' occurs more than once"):
        read(tmp_path / "t.csv", "t", ["g", "z"])
