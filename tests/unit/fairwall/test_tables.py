"""From a file to the people of two groups, in the order of the file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fairwall.tables.errors import DataError
from fairwall.tables.people import People, select
from fairwall.tables.reading import read
from fairwall.tables.roles import Roles

ROWS = "group,y,x\na,1,1.5\nb,0,2\nc,1,3\na,0,4\nb,1,5\n,0,6\n"
ROLES = Roles("group", "a", "b", "y", "1")


def people(tmp_path: Path, roles: Roles = ROLES, rows: str = ROWS) -> People:
    path = tmp_path / "people.csv"
    path.write_text(rows)
    return select("people", read(path, "people"), roles)


def test_the_two_groups_are_chosen_in_the_order_of_the_file(tmp_path: Path) -> None:
    chosen = people(tmp_path)
    assert chosen.kept.tolist() == [True, True, False, True, True, False]
    assert chosen.protected.tolist() == [1, 0, 1, 0]
    assert chosen.labels.tolist() == [1, 0, 0, 1]


def test_without_a_disadvantaged_value_everybody_else_is_whose_value_is_known(tmp_path: Path) -> None:
    chosen = people(tmp_path, Roles("group", "a", None, "y", "1"))
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
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=30).returncode == 0
