"""The commands `fairwall papers`, as processes: its list, its checks, and a third party's paper."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fairwall.errors import UserError
from sim.papers.claim import SHIPPED

Fairwall = Callable[..., subprocess.CompletedProcess[str]]
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "options", [(), ("--paper", "FF"), ("--status", "refuted"), ("--paper", "LD", "--status", "lost")]
)
def test_the_list_fits_80_columns(fairwall: Fairwall, options: tuple[str, ...]) -> None:
    listed = fairwall("papers", "list", *options)
    assert listed.returncode == 0, listed.stderr
    assert max(map(len, listed.stdout.splitlines())) <= 80
    assert re.search(r"\d+ claims?: ", listed.stdout)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["AR-12", "AR-21", "FF-13", "LD-12", "SD-15", "SD-28"])
def test_a_claim_is_shown_in_80_columns(fairwall: Fairwall, name: str) -> None:
    shown = fairwall("papers", "show", name)
    assert shown.returncode == 0, shown.stderr
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert shown.stdout.startswith(f"{name}, ")
    assert not re.search(r"\b(nan|None)\b", shown.stdout)


def test_programs_get_one_object(fairwall: Fairwall) -> None:
    listed = json.loads(fairwall("papers", "list", "--json").stdout, parse_constant=pytest.fail)
    assert len(listed["claims"]) >= 150
    one = json.loads(fairwall("papers", "show", "AR-12", "--json").stdout)
    assert one in listed["claims"]
    assert {"id", "paper", "where", "says", "kind", "status", "test", "evidence"} <= one.keys()


def test_a_paper_is_shown_whole_and_a_claim_is_drawn(fairwall: Fairwall, tmp_path: Path) -> None:
    whole = fairwall("papers", "show", "SD").stdout
    assert re.findall(r"^(SD-\d\d), ", whole, re.MULTILINE) == [f"SD-{number:02}" for number in range(1, 44)]
    assert max(map(len, whole.splitlines())) <= 80
    drawn = tmp_path / "errors.svg"
    assert fairwall("papers", "show", "SD-22", "--out", str(drawn)).returncode == 0
    assert "equal at 800 people" in drawn.read_text()


def test_an_install_without_evidence_says_so_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from sim.cli.papers import check, listed

    shutil.copy(SHIPPED / "SD.toml", tmp_path)
    monkeypatch.setattr("sim.papers.claim.SHIPPED", tmp_path)
    with pytest.raises(UserError, match="evidence is in the repository and not in this install"):
        check()
    listed()
    told = capsys.readouterr()
    assert len(told.err.splitlines()) == 1
    assert told.err.startswith("evidence is in the repository")
    assert " unplayed" in told.out
    listed(folder=tmp_path)
    assert capsys.readouterr().err == ""


@pytest.mark.check
def test_all_verdicts_follow_and_a_changed_number_is_noticed(fairwall: Fairwall, tmp_path: Path) -> None:
    checked = fairwall("papers", "check")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    own = tmp_path / "claims"
    shutil.copytree(SHIPPED, own, ignore=shutil.ignore_patterns("*.py", "__pycache__", "LD*", "SD*", "FF*"))
    path = own / "evidence" / "AR-12.json"
    text = path.read_text()
    number = json.loads(text)["values"][0][0]
    path.write_text(text.replace(str(number), str(number + 1), 1))
    checked = fairwall("papers", "check", "--papers", str(own))
    assert checked.returncode == 1
    assert "AR-12: " in checked.stdout
    assert "1 claim differs" in checked.stdout


@pytest.mark.check
def test_a_third_partys_paper_is_played_judged_and_checked(fairwall: Fairwall, tmp_path: Path) -> None:
    """The file that the page shows, and a check and a table besides."""
    (block,) = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "papers.md").read_text(), re.DOTALL)
    more = """
[[claim]]
id = "MINE-3"
where = "section 3"
kind = "number"
says = "it is about 1"

[claim.test]
table = "mine"
unit = "seed"
predicts = [
    { value = "b.x - a.x", of = { a = { kind = "a" }, b = { kind = "b" } }, printed = 1.0, margin = 0.1 },
]
"""
    (tmp_path / "MINE.toml").write_text(block.replace("trials = 10", "trials = 1") + more, encoding="utf-8")
    (tmp_path / "mine.csv").write_text("seed,kind,x\n" + "".join(f"{n},a,{n}\n{n},b,{n + 1}\n" for n in range(6)))
    data = ("--data", f"mine={tmp_path}/mine.csv", "--papers", str(tmp_path))
    cost = fairwall("papers", "run", "MINE-1", "--dry", *data)
    assert cost.stdout.splitlines()[0].startswith("MINE-1: reveal-adult-100, 1 trial in 1 cell; time not known")
    assert not (tmp_path / "evidence").exists()
    played = fairwall("papers", "run", "MINE-1", "MINE-3", *data)
    assert played.returncode == 0, played.stderr
    listed = fairwall("papers", "list", "--papers", str(tmp_path)).stdout
    assert re.findall(r"MINE-\d +(\S+(?: \S+)*?)  ", listed) == ["undecided", "not tested", "reproduced"]
    assert fairwall("papers", "check", "--papers", str(tmp_path)).returncode == 0
    again = fairwall("papers", "run", "MINE-3", *data)
    assert "MINE-3: reproduced, recorded as reproduced" in again.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", ["AR-07", "AR-34", "FF-20"])
def test_evidence_is_measured_again_to_the_same_numbers(fairwall: Fairwall, tmp_path: Path, name: str) -> None:
    assert fairwall("papers", "run", name, "--out", str(tmp_path)).returncode == 0
    again, kept = (json.loads((folder / f"{name}.json").read_text()) for folder in (tmp_path, SHIPPED / "evidence"))
    assert again["verdict"] == kept["verdict"]
    for ours, theirs in zip(again["values"], kept["values"], strict=True):
        assert ours == pytest.approx(theirs, abs=1e-6)


BAD = [
    (("show", "AR-99"), "no claim 'AR-99'; did you mean AR-"),
    (("show", "SD-22", "--out", "errors.png"), "--out errors.png: name a file that ends in .svg"),
    (("show", "SD-21", "--out", "gap.svg"), "--out gap.svg: SD-21 has no figure"),
    (("run", "nothing"), "no claim 'nothing'; `fairwall papers list` lists them"),
    (("run", "FF-13"), "claim FF-13: not tested: ACS Income"),
    (("run", "LD-08"), "--data ldp-seeds=FILE: this test needs a file of yours"),
    (("run", "LD-08", "--data", "ldp-seeds=/nowhere.csv"), "--data ldp-seeds=/nowhere.csv: no such file"),
    (("list", "--paper", "XX"), "--paper XX: there are AR, FF, LD, SD"),
    (("list", "--status", "true"), "--status true: a claim stands as one of reproduced, "),
    (("check", "--papers", "/nowhere"), "/nowhere: no paper's claims: "),
    (("list", "--papers", "."), "broken.toml: not valid TOML: "),
    (("list", "--page", "/nowhere/page.md"), "/nowhere/page.md: cannot be written: "),
]


@pytest.mark.few(3)
@pytest.mark.parametrize(("arguments", "words"), BAD, ids=[" ".join(each[0]) for each in BAD])
def test_bad_input_is_one_line(fairwall: Fairwall, tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    (tmp_path / "broken.toml").write_text("[paper\n")
    arguments = tuple(str(tmp_path) if each == "." else each for each in arguments)
    refused = fairwall("papers", *arguments)
    assert refused.returncode == 2
    assert words in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
