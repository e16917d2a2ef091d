"""From a file to the people of two groups, in the order of the file."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from fairwall.errors import DataError
from fairwall.tables import reading
from fairwall.tables.people import Roles, TwoGroups, select
from fairwall.tables.reading import header, read
from tests.support import loans_deployment

ROWS = "group,y,x\na,1,1.5\nb,0,2\nc,1,3\na,0,4\nb,1,5\n,0,6\n"
ROLES = Roles("group", "a", "b", "y", "1")


def people(tmp_path: Path, roles: Roles = ROLES, rows: str = ROWS) -> TwoGroups:
    path = tmp_path / "people.csv"
    path.write_text(rows)
    return select("people", read(path, "people"), roles)


def test_the_two_groups_are_chosen_in_the_order_of_the_file(tmp_path: Path) -> None:
    chosen = people(tmp_path)
    assert chosen.kept.tolist() == [True, True, False, True, True, False]
    assert chosen.protected.tolist() == [1, 0, 1, 0]
    assert chosen.labels.tolist() == [1, 0, 0, 1]


def test_without_a_disadvantaged_value_the_other_one_of_two_is_whose_value_is_known(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has besides 'a' several others"):
        people(tmp_path, Roles("group", "a", None, "y", "1"))
    chosen = people(tmp_path, Roles("group", "a", None, "y", "1"), ROWS.replace("\nc,", "\nb,"))
    assert chosen.kept.tolist() == [True] * 5 + [False]
    assert chosen.protected.tolist() == [1, 0, 0, 1, 0]


def test_the_protected_column_does_not_show(tmp_path: Path) -> None:
    assert "protected" not in repr(people(tmp_path))


@pytest.mark.parametrize(
    ("roles", "why"),
    [
        (Roles("race", "a", "b", "y", "1"), "people: no column 'race'; its columns are group, y, x"),
        (Roles("group", "a", "b", "y", "1", ("z",)), "people: no column 'z'; its columns are group, y, x"),
        (Roles("group", "a", "b", "group", "a"), "people: column 'group' cannot be both protected and the label"),
        (Roles("group", "z", "b", "y", "1"), "people: column 'group' has no value 'z'; it has 4 different values"),
        (Roles("group", "a", "a", "y", "1"), "people: column 'group' cannot have 'a' both advantaged and disadv"),
        (Roles("group", "a", "b", "y", "2"), "people: column 'y' has no value '2'; its values are 0, 1"),
        (Roles("group", None, "b", "y", "1"), "people: column 'group' needs an advantaged value"),
        (Roles("group", "a", "b", "y", None), "people: column 'y' needs a positive value"),
    ],
)
def test_a_role_that_no_column_can_play_is_refused_in_one_line(tmp_path: Path, roles: Roles, why: str) -> None:
    with pytest.raises(DataError) as caught:
        people(tmp_path, roles)
    assert str(caught.value).startswith(why)
    assert "\n" not in str(caught.value)


def test_a_row_without_a_label_and_a_label_that_never_varies_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no value in 1 rows"):
        people(tmp_path, rows="group,y\na,1\nb,0\nb,\n")
    with pytest.raises(DataError, match="every row of the two groups"):
        people(tmp_path, rows="group,y\na,1\nb,1\nc,0\n")


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read(tmp_path / "none.csv", "none")
    (tmp_path / "people.txt").write_text(ROWS)
    with pytest.raises(DataError, match="neither CSV nor Parquet"):
        read(tmp_path / "people.txt", "people")


def test_a_game_s_process_does_not_wait_for_the_library_that_reads_tables() -> None:
    code = "import sys, compliance.__main__; sys.exit(bool({'pyarrow', 'pydantic', 'cryptography'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=300).returncode == 0


# Files larger than what is kept of them.

WIDE = 30
GROWTH = """
import re, sys
from pathlib import Path
from compliance.deployment.policy.loading import load
from compliance.deployment.policy.reading import read as read_policy
from fairwall.errors import UserError
from fairwall.tables.reading import read

def most():
    return int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1])

read(Path("small.csv"), "small")
before = most()
try:
    for each in read_policy(Path("policy.toml")).datasets.values():
        load(each)
except UserError as error:
    print(most() - before, error)
"""


@pytest.mark.check
def test_a_policy_s_large_table_takes_the_memory_of_the_two_columns_that_it_needs(tmp_path: Path) -> None:
    loans_deployment.Deployment(tmp_path)
    (tmp_path / "small.csv").write_bytes((tmp_path / "people.csv").read_bytes())
    rows = 2**20
    with (tmp_path / "people.csv").open("w") as file:
        file.write(",".join(["group", "repaid", *(f"x{i}" for i in range(WIDE))]) + "\n")
        for _ in range(rows // 1024):
            file.write("".join(f"{'ab'[i % 2]},{i // 2 % 2}{',1' * WIDE}\n" for i in range(1024)))
        file.write("a,1\n")
    told = subprocess.run([sys.executable, "-c", GROWTH], cwd=tmp_path, capture_output=True, text=True, check=True)
    kilobytes, _, error = told.stdout.partition(" ")
    assert error == f"data.source: people.csv: row {rows + 2} has 2 fields where the header has {WIDE + 2}\n"
    # 64 MB in the file, 20 MB in two columns; the rest is blocks on their way.
    assert (tmp_path / "people.csv").stat().st_size > 64 * rows
    assert int(kilobytes) < 128 * 1024


def write(folder: Path, form: str, rows: int) -> Path:
    """Write a table of three columns of numbers, too large for one block of CSV."""
    path = folder / f"people.{form}"
    columns = {name: pa.array(range(rows)) for name in ("x", "y", "z")}
    if form == "csv":
        csv.write_csv(pa.table(columns), path)
    else:
        parquet.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize("form", ["csv"])
def test_a_table_that_grows_too_large_is_refused(tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, form, 200_000)
    assert read(path, "people").num_rows == 200_000
    monkeypatch.setattr(reading, "ROWS_MAX", 199_999)
    with pytest.raises(DataError, match="people: has more than 199,999 rows; take a sample"):
        read(path, "people")
    monkeypatch.setattr(reading, "ROWS_MAX", 200_000)
    monkeypatch.setattr(reading, "BYTES_MAX", 2**21)
    with pytest.raises(DataError, match="people: takes more than 0 GiB; leave out rows or columns"):
        read(path, "people")
    # One column is less.
    assert read(path, "people", ["z"]).column_names == ["z"]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_table_is_refused_as_soon_as_it_is_too_large(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, form, 100_000)
    content = path.read_bytes()
    if form == "csv":
        path.write_bytes(content + b"ragged\n")
    monkeypatch.setattr(reading, "ROWS_MAX", 1000)
    with pytest.raises(DataError, match="more than 1,000 rows"):
        read(path, "people")


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_columns_are_kept_in_the_order_in_which_they_are_asked_for(tmp_path: Path, form: str) -> None:
    path = write(tmp_path, form, 3)
    assert header(path, "people") == ["x", "y", "z"]
    assert read(path, "people", ("z", "x", "z")).column_names == ["z", "x"]
    with pytest.raises(DataError, match="people: no column 'a'; its columns are x, y, z"):
        read(path, "people", ("x", "a"))


def as_a_whole(path: Path) -> pa.Table:
    """Read a file as pyarrow does at once."""
    return csv.read_csv(
        path,
        parse_options=csv.ParseOptions(newlines_in_values=True),
        convert_options=csv.ConvertOptions(strings_can_be_null=True),
    )


VALUES = {
    "missing": ["", "NA"],
    "whole": ["1", "-2", ""],
    "bit": ["0", "1"],
    "truth": ["true", "false", "1"],
    "date": ["2020-01-02"],
    "time": ["12:00:00"],
    "moment": ["2020-01-02 03:04:05"],
    "instant": ["2020-01-02T03:04:05Z"],
    "fraction": ["1.5", "1e9", "nan"],
    "large": ["99999999999999999999"],
    "text": ["a", '"a ""quoted"" word"', '"two\nlines, and a comma"'],
    "latin": ["caf\udce9"],
}


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ("missing", "whole"),
        ("whole", "fraction"),
        ("bit", "truth"),
        ("date", "moment"),
        ("moment", "instant"),
        ("whole", "large"),
        ("time", "text"),
        ("text", "latin"),
    ],
)
def test_a_column_whose_last_values_differ_has_the_type_that_fits_them_all(
    tmp_path: Path, first: str, last: str
) -> None:
    path = tmp_path / "people.csv"
    rows = 20_000  # of more than one block
    values: list[Sequence[str]] = [VALUES[first]] * rows + [VALUES[last]] * 3
    lines = [f"{choice[i % len(choice)]},{'x' * 60},{i}\n" for i, choice in enumerate(values)]
    path.write_text("".join(["a,b,c\n", *lines]), encoding="utf-8", errors="surrogateescape")
    found, whole = read(path, "people"), as_a_whole(path)
    assert found.schema == whole.schema
    assert found.equals(whole)
