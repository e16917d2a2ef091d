"""``fairwall deploy check``: what a start would say, and nothing served, written or spent."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.support.command import fairwall

EXAMPLE = Path(__file__).parents[2] / "docs" / "example"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "own"
    shutil.copytree(EXAMPLE, folder)
    (folder / "loans.csv").chmod(0o600)
    made = fairwall("deploy", "certificates", "new", "--deployment", "loans", "--developer", "alice", cwd=folder)
    assert made.returncode == 0, made.stderr
    policy = (folder / "policy.toml").read_text()
    (folder / "policy.toml").write_text(policy.partition("[developers.bob]")[0])
    return folder


def files(folder: Path) -> set[Path]:
    return {path.relative_to(folder) for path in folder.rglob("*") if "__pycache__" not in path.parts}


@pytest.mark.check
def test_it_says_what_answers_will_be_worth_and_leaves_nothing_behind(place: Path) -> None:
    before = files(place)
    done = fairwall("deploy", "check", "--policy", "policy.toml", cwd=place)
    assert (done.returncode, done.stderr) == (0, "")
    summary, groups, labels, heading, columns, *metrics, revealed, proved, kept = done.stdout.splitlines()
    assert groups == "loans.csv: column 'group': advantaged 'a' 2,089; disadvantaged 'b' 911"
    assert re.fullmatch(r"loans.csv: column 'repaid': positive '1' [0-9,]+; negative '0' [0-9,]+", labels)
    assert summary.startswith("loans: metrics sp, eo; mechanism recommended; epsilon 4; developers alice")
    assert heading == "loans: 95% interval (median error) at epsilon 2"
    assert columns.split()[1:4] == ["metric", "one", "model"]
    assert [line.split()[1] for line in metrics] == ["sp", "eo"]
    assert re.search(
        r"at most 7\d(\.\d)?% by the best attack known here, groups of 20 and more; with a share of it alice", revealed
    )
    assert "at most 98.2%, whatever it does: proved" in proved
    assert re.search(r"by that attack: 60% 0\.\d, 70% \d(\.\d)?, 80% \d$", kept)
    assert files(place) == before


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('mechanism = "recommended"', 'mechanism = "nonsense"', "policy.toml: audit.mechanism: must be one of"),
        ('source = "loans.csv"', 'source = "gone.csv"', "gone.csv"),
        (
            'credentials = "certificates/compliance"',
            'credentials = "certificates/developer-alice"',
            "not for compliance",
        ),
    ],
)
def test_what_a_start_would_refuse_is_one_line_and_status_2(place: Path, old: str, new: str, said: str) -> None:
    text = (place / "policy.toml").read_text()
    assert old in text
    (place / "policy.toml").write_text(text.replace(old, new))
    done = fairwall("deploy", "check", "--policy", "policy.toml", cwd=place)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.check
def test_the_same_people_under_two_names_are_refused_before_a_start(place: Path) -> None:
    text = (place / "several.toml").read_text()
    (place / "policy.toml").write_text(text)
    assert fairwall("deploy", "check", "--policy", "policy.toml", cwd=place).returncode == 0
    (place / "policy.toml").write_text(text.replace("training.csv", "loans.csv"))
    done = fairwall("deploy", "check", "--policy", "policy.toml", cwd=place)
    assert (done.returncode, done.stdout) == (2, "")
    assert "these people's data are called loans, and have one budget" in done.stderr
