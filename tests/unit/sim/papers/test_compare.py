"""``fairwall papers compare``: a run of the release game against published figures, on made-up runs and files."""

from __future__ import annotations

import csv
import gzip
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sim.games import read
from sim.games.release.seeds import METRICS, RATES, CompareError
from sim.papers.compare import Held, compare
from tests.support.command import fairwall

SCENARIO = """
[scenario]
name = "made-up"
game = "release"
[data]
source = "lsac-coded:db_LSAC.csv"
[compliance]
mechanism = "exact"
[release]
protocol = "grr"
epsilon = 1.0
[developer]
"""
EPSILONS = (0.25, 1.0, 4.0, 50.0)
Rows = list[dict[str, Any]]


def drawn(seeds: Sequence[int], noise: int, split: float = 0.0, by: float = 0.01) -> Iterator[tuple[float, int, Any]]:
    """Figures of each epsilon and seed: what both sides' split of that seed does, and noise of this side's own."""
    for epsilon in EPSILONS:
        for seed in seeds:
            shared = np.random.default_rng([int(100 * epsilon), seed]).normal(0, split, len(METRICS))
            own = np.random.default_rng([int(100 * epsilon), seed, noise + 1]).normal(0, by, len(METRICS))
            yield epsilon, seed, 0.5 + shared + own


def published(seeds: Sequence[int] = range(6), noise: int = 1, **spread: float) -> Rows:
    """Rows of a file."""
    return [
        {"dataset": "LSAC", "protocol": "SUE", "split": "k_based", "epsilon": epsilon, "seed": seed}
        | dict(zip(METRICS, map(float, values), strict=True))
        for epsilon, seed, values in drawn(seeds, noise, **spread)
    ]


def played(seeds: Sequence[int] = range(6), noise: int = 1, **spread: float) -> Rows:
    """Lines of a run; with the same noise, the same figures."""
    return [
        {"protocol": "rappor", "split": "k-based", "epsilon": epsilon, "split_seed": seed}
        | dict(zip(METRICS.values(), map(float, values), strict=True))
        for epsilon, seed, values in drawn(seeds, noise, **spread)
    ]


def file_of(folder: Path, rows: Sequence[Mapping[str, Any]], name: str = "published.csv.gz") -> Path:
    with (gzip.open if name.endswith("gz") else open)(folder / name, "wt", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return folder / name


def run_of(folder: Path, lines: Rows, scenario: str = SCENARIO) -> Path:
    (folder / "run").mkdir()
    (folder / "run" / "scenario.toml").write_text(scenario)
    (folder / "run" / "trials.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder / "run"


def held(folder: Path, lines: Rows, rows: Rows) -> Held:
    (folder / "scenario.toml").write_text(SCENARIO)
    return compare([(read(str(folder / "scenario.toml")), lines)], file_of(folder, rows))


def test_the_same_figures_agree(tmp_path: Path) -> None:
    found = held(tmp_path, played(), published())
    assert found.well
    assert not found.reproduction
    assert (found.cells(), found.cells(6), found.cells(7), found.published) == (4, 4, 0, 4)
    assert all(each.difference == 0 for each in found.comparisons)


def test_a_metric_that_is_shifted_is_found_and_no_other(tmp_path: Path) -> None:
    for key, name in [(key, name) for name, key in METRICS.items()][::3]:
        lines = [line | {key: line[key] + 0.1} for line in played()]
        found = held(tmp_path, lines, published())
        assert {(each.metric, each.beyond) for each in found.compared if each.beyond} == {(name, 3)}
        assert (found.share(2), found.share(3), found.well) == (1 / 8, 1 / 8, False)


def test_groups_rates_are_compared_where_both_sides_have_them(tmp_path: Path) -> None:
    lines = [line | dict.fromkeys(RATES.values(), 0.5) for line in played()]
    rows = [row | dict.fromkeys(RATES, 0.5) | {"EO_a_0": 0.6} for row in published()]
    found = held(tmp_path, lines, rows)
    assert {each.metric for each in found.compared} == METRICS.keys() | RATES.keys()
    assert {each.metric for each in found.compared if each.beyond} == {"EO_a_0"}
    for fewer in (held(tmp_path, played(), rows), held(tmp_path, lines, published())):
        assert ({each.metric for each in fewer.comparisons}, fewer.left_out) == (METRICS.keys(), 0)


def test_runs_together_are_held_as_one(tmp_path: Path) -> None:
    lines, rows = played(), published()
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    sweep, file = read(str(tmp_path / "scenario.toml")), file_of(tmp_path, rows)
    first, second = lines[::2], lines[1::2]
    apart, whole = compare([(sweep, first), (sweep, second)], file), compare([(sweep, lines)], file)
    assert set(apart.comparisons) == set(whole.comparisons)
    # The same trials twice are the same; another model of a seed is not.
    assert compare([(sweep, lines), (sweep, first)], file).comparisons == whole.comparisons
    with pytest.raises(CompareError, match="two runs have other figures of LSAC, "):
        compare([(sweep, lines), (sweep, [line | {"acc": 0.1} for line in first])], file)
    other = tmp_path / "drawn.toml"
    other.write_text(SCENARIO.replace("[compliance]", "sensitive_drawn = [2, 6]\n[compliance]"))
    with pytest.raises(CompareError, match="two studies"):
        compare([(sweep, first), (read(str(other)), second)], file)


def test_pairing_by_seed_shrinks_the_error(tmp_path: Path) -> None:
    spread = {"split": 0.1, "by": 0.01}
    rows = published(range(20), noise=1, **spread)
    paired = held(tmp_path, played(range(20), noise=2, **spread), rows)
    # Other seeds have other splits, and are held against all of the file's.
    apart = held(tmp_path, played(range(20, 40), noise=2, **spread), rows)
    for one, other in zip(paired.compared, apart.compared, strict=True):
        assert one.tolerances is not None
        assert other.tolerances is not None
        assert one.tolerances[0] < other.tolerances[0] / 3


def test_tolerances_are_student_s(tmp_path: Path) -> None:
    rows = [row | dict.fromkeys(METRICS, 0.0) for row in published(range(3))]
    of_seed = {0: 0.1, 1: 0.2, 2: 0.6}
    lines = [line | dict.fromkeys(METRICS.values(), of_seed[line["split_seed"]]) for line in played(range(3))]
    first = held(tmp_path, lines, rows).comparisons[0]
    # By hand: mean 0.3, standard deviation sqrt(0.07), and Student's t of 2 degrees, t(p) = (2p-1) / sqrt(2p(1-p)).
    error = math.sqrt(0.07 / 3)
    p = [0.9772498680518208, 0.9986501019683699]
    assert first.difference == pytest.approx(0.3)
    assert first.tolerances == pytest.approx([error * (2 * each - 1) / math.sqrt(2 * each * (1 - each)) for each in p])


@pytest.mark.few(1)
@pytest.mark.parametrize("common", [True, False])
def test_equal_laws_are_beyond_two_errors_as_often_as_the_normal_law_says(tmp_path: Path, common: bool) -> None:
    # 960 independent comparisons of few seeds: 4.55% and 0.27% nominal, 0.67 points the standard deviation. The limits
    # are four of these away, so that a sound test fails less than once in 10,000 seeds; Welch's errs to the low side.
    beyond = {2: 0, 3: 0}
    count = 0
    for repetition in range(30):
        rows = published(range(4), noise=2 * repetition, split=0.02)
        seeds = range(4) if common else range(10, 14)
        found = held(tmp_path, played(seeds, noise=2 * repetition + 1, split=0.02), rows)
        count += len(found.compared)
        for errors in beyond:
            beyond[errors] += sum(each.beyond >= errors for each in found.compared)
    assert count == 960
    assert 0.015 < beyond[2] / count < 0.073
    assert beyond[3] / count < 0.0125


@pytest.mark.parametrize("side", ["run", "file"])
def test_a_figure_that_is_no_number_is_left_out_and_counted(tmp_path: Path, side: str) -> None:
    lines, rows = played(), published()
    if side == "run":
        lines[0]["di"] = lines[1]["di"] = None
    else:
        rows[0]["DI"], rows[1]["DI"] = "nan", ""
    found = held(tmp_path, lines, rows)
    assert found.left_out == 2
    assert {each.metric: each.seeds for each in found.compared[: len(METRICS)]} == dict.fromkeys(METRICS, 6) | {"DI": 4}


def test_one_seed_is_too_few(tmp_path: Path) -> None:
    with pytest.raises(CompareError, match="too few seeds"):
        held(tmp_path, played([3]), published())
    mixed = held(tmp_path, [line for line in played() if line["epsilon"] != 1.0 or not line["split_seed"]], published())
    assert (mixed.cells(), len(mixed.comparisons) - len(mixed.compared)) == (3, len(METRICS))


def test_controls_that_nobody_published_are_passed_over(tmp_path: Path) -> None:
    spends_less = {"split": "uniform-at-k-based", "epsilon": 1.0}
    releases_nothing = {"protocol": "dropped", "split": "uniform", "epsilon": "inf"}
    played_once = [line for line in played() if line["epsilon"] == 4.0]
    controls = [line | control for line in played_once for control in (spends_less, releases_nothing)]
    found, alone = held(tmp_path, played() + controls, published()), held(tmp_path, played(), published())
    assert (found.comparisons, found.theirs, found.left_out) == (alone.comparisons, alone.theirs, alone.left_out)


def clean(rows: Rows) -> Rows:
    """The file's rows of models trained on clean attributes, or the lines of such trials."""
    lines = [row | {"protocol": "clean", "split": "uniform", "epsilon": "inf"} for row in rows if row["epsilon"] == 1.0]
    gone = ("protocol", "split", "epsilon") if "dataset" in rows[0] else ()
    return [{key: value for key, value in line.items() if key not in gone} for line in lines]


@pytest.mark.parametrize(("shift", "well"), [(1e-15, True), (1e-11, False)])
def test_without_a_protocol_every_seed_must_be_the_same(tmp_path: Path, shift: float, well: bool) -> None:
    lines = clean(played(range(3)))
    lines[1]["acc"] += shift
    found = held(tmp_path, lines, clean(published()))
    assert (found.exact, found.well, found.cells(3)) == (True, well, 1)
    assert [each.metric for each in found.compared if each.beyond] == ([] if well else ["acc"])


@pytest.mark.check
def test_the_command_says_what_differs_and_all_of_it_if_asked(tmp_path: Path) -> None:
    file = file_of(tmp_path, published())
    run = run_of(tmp_path, [line | {"recall": line["recall"] + 0.1} for line in played()])
    done = fairwall("papers", "compare", run, file)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.count("> 3 SE") == done.stdout.count(" recall ") == 4
    assert "cells: 4 of the file's 4, 4 of them in 3 seeds or more" in done.stdout
    assert "12.5% beyond 2 standard errors (at most 12%)" in done.stdout
    assert "DIFFERS" in done.stdout.splitlines()[-1]
    whole = fairwall("papers", "compare", run, file, "--all")
    assert whole.stdout.count("agrees") == 4 * (len(METRICS) - 1)
    assert max(map(len, whole.stdout.splitlines())) <= 80
    (run / "trials.jsonl").write_text("".join(json.dumps(line) + "\n" for line in played()))
    well = fairwall("papers", "compare", run, file)
    assert (well.returncode, well.stderr) == (0, "")
    assert well.stdout.splitlines()[-1].startswith("agrees")


@pytest.mark.check
@pytest.mark.parametrize(("source", "drawn"), [("", False), ("sensitive_drawn = [2, 6]\n", True)])
def test_the_command_says_which_study_a_run_is_for(tmp_path: Path, source: str, drawn: bool) -> None:
    run = run_of(tmp_path, played(), SCENARIO.replace("[compliance]", f"{source}[compliance]"))
    done = fairwall("papers", "compare", run, file_of(tmp_path, published()))
    assert (done.returncode, done.stderr) == (0, "")
    study = "drawn by each seed (appendix)" if drawn else "the same in each trial (main study)"
    assert f"sensitive columns: {study}; the file does not say" in done.stdout.splitlines()


def without(column: str) -> Rows:
    return [{key: value for key, value in row.items() if key != column} for row in published()]


REVEAL = '[scenario]\nname = "r"\ngame = "reveal"\n[data]\nsource = "synthetic"\nn = 30\nn0 = 12\nscores = "uniform"\n'
REVEAL += '[compliance]\nmechanism = "exact"\n[developer]\nstrategy = "single"\n'


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("scenario", "lines", "rows", "named"),
    [
        ("", [], published(), "not a run's folder"),
        (REVEAL, played(), published(), "the reveal game has no published figures seed by seed"),
        (SCENARIO, [], published(), "no trial finished"),
        (SCENARIO, [{"protocol": "rappor"}], published(), "trials.jsonl is not as a run"),
        (SCENARIO, played(), without("OAD"), "no column 'OAD'"),
        (SCENARIO, played(), without("split"), "no column 'split'"),
        (SCENARIO, played(), [row | {"acc": "high"} for row in published()], "row 1: "),
        (SCENARIO, played(), [row | {"dataset": "adult"} for row in published()], "no cell in common"),
        (SCENARIO, played(), clean(published()), "no cell in common"),
        (SCENARIO, clean(played([7])), clean(published()), "no seed in common"),
        (SCENARIO, played(), published() + published(noise=5), "has seed 0 more than once"),
        (SCENARIO, played() + played(noise=5), published(), "several trials of LSAC, rappor, k-based, epsilon 0.25"),
        (
            SCENARIO.replace("[compliance]", 'sensitive = ["race1", "lsat"]\n[compliance]'),
            played(),
            published(),
            "no figures are published of other columns",
        ),
        (
            SCENARIO.replace("[compliance]", "sensitive_drawn = [2, 3]\n[compliance]"),
            played(),
            published(),
            "data.sensitive_drawn: figures are published of [2, 6] alone",
        ),
        (
            SCENARIO.replace("[compliance]", "test_share = 0.5\n[compliance]"),
            played(),
            published(),
            "data.test_share: figures are published of 0.2 alone, not of 0.5",
        ),
        (
            SCENARIO.replace("lsac-coded:db_LSAC", "mine"),
            played(),
            published(),
            "data.source: no figures are published",
        ),
    ],
)
def test_bad_input_is_one_line_and_status_2(tmp_path: Path, scenario: str, lines: Rows, rows: Rows, named: str) -> None:
    run = run_of(tmp_path, lines, scenario)
    if not scenario:
        (run / "scenario.toml").unlink()
    done = fairwall("papers", "compare", run, file_of(tmp_path, rows))
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert named in done.stderr


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    run = run_of(tmp_path, played())
    (tmp_path / "broken.csv.gz").write_bytes(b"no gzip")
    for name, why in (("nowhere.csv", "no such file"), ("broken.csv.gz", "it is not compressed by gzip")):
        done = fairwall("papers", "compare", run, tmp_path / name)
        assert (done.returncode, done.stdout) == (2, "")
        assert why in done.stderr
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.check
def test_trees_that_were_trained_otherwise_are_told(tmp_path: Path) -> None:
    file = file_of(tmp_path, published())
    for trees, told in (("trees = 10\ndepth = 9\n", True), ("trees = 1100\n", False), ("", False)):
        (tmp_path / trees[:10].strip()).mkdir(exist_ok=True)
        run = run_of(tmp_path / trees[:10].strip(), played(), SCENARIO + trees)
        said = " ".join(fairwall("papers", "compare", run, file).stdout.split())
        assert ("trained otherwise than what is published: developer.trees 10, published 1,100" in said) is told
        assert "developer.depth" not in said
