"""[LD]'s three questions: on made-up figures whose answers are known, and on the published ones."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure as Canvas
from matplotlib.text import Text

from sim.games import read
from sim.games.release.page import page
from sim.games.release.questions import FAIRNESS, UTILITY, Effect, ReleaseFindings, answers
from sim.games.release.seeds import METRICS, Figures, ReleaseCell, of_run, published, table_name
from sim.games.release.studied import verdicts
from tests.support.command import fairwall
from tests.unit.sim.papers.test_compare import Rows, file_of, run_of

SHARED = Path(__file__).parents[4] / "shared" / "data"
NEEDS_TABLES = pytest.mark.skipif(not SHARED.exists(), reason="needs the published figures")
CLEAN = ReleaseCell("d", "clean", "", math.inf)


def figures_of(cells: Mapping[ReleaseCell, Mapping[str, Sequence[float]]]) -> Figures:
    """Turn each metric's figures, a number a seed, into figures by seed."""
    return {
        cell: {
            seed: {metric: values[seed] for metric, values in told.items()}
            for seed in range(len(next(iter(told.values()))))
        }
        for cell, told in cells.items()
    }


def of(cell: ReleaseCell, values: Sequence[float], **others: Sequence[float]) -> Mapping[str, Sequence[float]]:
    return dict.fromkeys((*FAIRNESS, *UTILITY), values) | others


def cell(protocol: str = "grr", split: str = "uniform", epsilon: float = 1.0) -> ReleaseCell:
    return ReleaseCell("d", protocol, split, epsilon)


def effect(found: ReleaseFindings, metric: str) -> Effect:
    return found.released[metric]


def test_better_is_larger_or_closer_to_the_perfect_value() -> None:
    for metric, clean, sanitised, better in [
        ("acc", 0.8, 0.7, -0.1),
        ("sp", 0.3, 0.1, 0.2),
        ("sp", -0.3, -0.1, 0.2),
        ("sp", 0.1, -0.3, -0.2),
        ("di", 0.5, 0.8, 0.3),
        ("di", 1.5, 1.2, 0.3),
        ("di", 0.9, 1.1, 0.0),
    ]:
        told = {CLEAN: {metric: [clean - 0.01, clean + 0.01]}, cell(): {metric: [sanitised - 0.01, sanitised + 0.01]}}
        (found,) = answers(figures_of(told))
        assert effect(found, metric).mean == pytest.approx(better)


def test_figures_that_only_scatter_more_are_no_less_fair() -> None:
    # Means of |gap| would be 0.1 and 0.3.
    told = {CLEAN: {"sp": [0.0, 0.2, 0.0, 0.2]}, cell(): {"sp": [-0.2, 0.4, -0.2, 0.4]}}
    (found,) = answers(figures_of(told))
    assert effect(found, "sp").mean == pytest.approx(0)


def test_a_seed_that_not_all_have_is_left_out() -> None:
    figures = {
        CLEAN: {0: {"acc": 0.5}, 1: {"acc": 0.6}, 2: {"acc": 0.7}},
        cell(): {1: {"acc": 0.5}, 2: {"acc": 0.6}, 3: {"acc": 0.0}},
        cell("ss"): {0: {"acc": 0.0}, 1: {"acc": 0.6}, 2: {"acc": 0.6}},
    }
    found = effect(answers(figures)[0], "acc")
    assert (found.seeds, found.cells, found.better) == (2, 2, 0)
    assert (found.mean, found.worst) == (pytest.approx(-0.075), pytest.approx(-0.1))
    # By hand: a seed's means over the cells are -0.05 and -0.1.
    assert found.error == pytest.approx(0.025)


def test_without_an_effect_a_clear_one_is_found_as_often_as_stated() -> None:
    # 500 independent tests at 5%, standard deviation 1 point: the limits are four of these away.
    rng = np.random.default_rng(1)
    clear = 0
    for _ in range(500):
        values = rng.normal(0.8, 0.01, (2, 5))
        (found,) = answers(figures_of({CLEAN: {"acc": values[0]}, cell(): {"acc": values[1]}}))
        clear += effect(found, "acc").sign != 0
    assert 0.01 < clear / 500 < 0.09


def test_cells_are_counted_by_their_means() -> None:
    told = {
        cell(split=split, epsilon=epsilon): {"acc": np.array([0.5, 0.51]) + shift}
        for split in ("uniform", "k-based", "other")
        for epsilon, shift in ((1.0, 0.1 if split == "k-based" else 0), (2.0, 0), (4.0, -0.1 * (split == "k-based")))
    }
    (found,) = answers(figures_of(told))
    assert list(found.split) == ["uniform", "other"]
    (against,) = found.split["uniform"].values()
    assert (against.cells, against.better, against.clearly_better, against.clearly_worse) == (3, 1, 1, 1)
    assert (against.mean, against.worst) == (pytest.approx(0), pytest.approx(-0.1))


def ranked(order: Sequence[str], consistent: Mapping[str, float], seeds: int = 4) -> ReleaseFindings:
    """Let protocols be the better, the earlier they stand, by every metric."""
    told = {}
    for place, protocol in enumerate(order):
        worse = np.full(seeds, 0.05 * place) + np.linspace(0, 1e-6, seeds)
        told[cell(protocol)] = (
            {metric: perfect - 0.1 - worse for metric, perfect in FAIRNESS.items()}
            | dict.fromkeys(UTILITY, 0.8 - worse)
            | {"consistent": np.full(seeds, consistent[protocol])}
        )
    return answers(figures_of(told))[0]


def test_protocols_are_ranked_and_ties_share() -> None:
    found = ranked(["ss", "grr", "blh"], {"ss": 1.0, "grr": 0.9, "blh": 0.1})
    assert [each.protocol for each in found.standings] == ["ss", "grr", "blh"]
    assert [each.ranks for each in found.standings] == [
        dict.fromkeys(("fairness", "utility", "trade-off"), rank) for rank in (1, 2, 3)
    ]
    assert [sorted(each.ahead) for each in found.standings] == [[], ["ss"], ["grr", "ss"]]
    assert {kind: each.mean for kind, each in found.inconsistency.items()} == pytest.approx(
        dict.fromkeys(("fairness", "utility", "trade-off"), 1.0)
    )
    same = {protocol: of(cell(), [0.5, 0.6]) for protocol in ("grr", "ss")}
    (tied,) = answers(figures_of({cell(protocol): told for protocol, told in same.items()}))
    assert [each.ranks["trade-off"] for each in tied.standings] == [1.5, 1.5]
    assert not any(each.ahead for each in tied.standings)


def test_grr_and_ss_are_best_where_they_lead() -> None:
    for order in list(itertools.permutations(["grr", "ss", "oue", "blh"]))[::4]:
        text = verdicts(ranked(order, dict.fromkeys(order, 0.5)))["RQ3"]
        last = max(order.index("grr"), order.index("ss"))
        first = min(order.index("grr"), order.index("ss"))
        expected = "yes" if last == 1 else "no" if first > 0 else "in part"
        assert text.startswith(f"GRR and SS best: {expected}. Mean rank of 4 by trade-off: ")
        assert "Correlation" not in text


def test_one_seed_is_not_enough_for_a_verdict() -> None:
    told = {
        each: of(each, [0.5 - 0.01 * place])
        for place, each in enumerate((CLEAN, cell(), cell("ss"), cell("oue"), cell(split="k-based")))
    }
    said = list(verdicts(answers(figures_of(told))[0]).values())
    assert said[0].startswith("fairer: cannot say; cost negligible: cannot say. ")
    assert said[1].startswith("fairer: cannot say; more useful: cannot say. ")
    assert said[2].startswith("GRR and SS best: cannot say. ")


def test_what_was_not_played_is_not_judged() -> None:
    for only in (cell(), CLEAN):
        (told,) = answers(figures_of({only: of(only, [0.5, 0.6])}))
        for found in verdicts(told).values():
            assert found.startswith("cannot say: in no seed are there ")


def test_fairer_is_said_where_some_metric_is_and_none_is_less() -> None:
    for signs in list(itertools.product((-1, 0, 1), repeat=4))[::4]:

        def around(mean: float) -> Any:
            return mean + np.array([-1e-3, 1e-3, 0, 0])

        changes = dict(zip(FAIRNESS, signs, strict=True))
        clean = {metric: around(perfect - 0.5) for metric, perfect in FAIRNESS.items()} | dict.fromkeys(
            UTILITY, around(0.8)
        )
        # What is no change has an error, but no mean.
        jitter = np.array([1, -1, 1, -1]) * 1e-2
        sanitised = {metric: clean[metric] + 0.1 * changes[metric] + jitter for metric in FAIRNESS} | {
            metric: clean[metric] + jitter for metric in UTILITY
        }
        found = verdicts(answers(figures_of({CLEAN: clean, cell(): sanitised}))[0])["RQ1"]
        there = set(signs) - {0}
        expected = "in part" if len(there) == 2 else {1: "yes", -1: "no"}[there.pop()] if there else "cannot say"
        assert found.startswith(f"fairer: {expected}; ")


def test_a_cost_is_negligible_within_one_point() -> None:
    for loss, spread, said in [
        (0.0, 1e-4, "yes"),
        (0.009, 1e-4, "yes"),
        (0.011, 1e-4, "no"),
        (0.009, 1e-2, "cannot say"),
        (0.2, 1e-3, "no"),
    ]:
        jitter = np.array([1, -1, 1, -1]) * spread
        clean = of(CLEAN, [0.5] * 4)
        sanitised = of(cell(), [0.5] * 4, f1=0.5 - loss + jitter)
        found = verdicts(answers(figures_of({CLEAN: clean, cell(): sanitised}))[0])["RQ1"]
        assert f"cost negligible: {said}. " in found


@pytest.fixture(scope="module")
def official() -> dict[str, ReleaseFindings]:
    files = ("ldp_official_seeds.csv.gz", "ldp_official_nondp_seeds.csv.gz")
    every = {cell: seeds for name in files for cell, seeds in published(SHARED / name).items()}
    return {each.data: each for each in answers(every)}


@pytest.mark.check
@NEEDS_TABLES
def test_the_published_figures_bear_out_only_some_of_what_is_said_of_them(official: dict[str, ReleaseFindings]) -> None:
    found = {name: list(verdicts(told).values()) for name, told in official.items()}
    for name, beginnings in {
        "adult": ("fairer: yes; cost negligible: yes.", "fairer: in part; more useful: yes.", "GRR and SS best: yes."),
        "ACSCoverage": (
            "fairer: in part; cost negligible: no.",
            "fairer: in part; more useful: no.",
            "GRR and SS best: yes.",
        ),
        "LSAC": ("fairer: yes; cost negligible: yes.", "alike: yes.", "GRR and SS best: yes."),
    }.items():
        assert all(text.startswith(start) for text, start in zip(found[name], beginnings, strict=True)), found[name]


@pytest.mark.check
@NEEDS_TABLES
def test_acs_coverage_loses_f1_and_k_based_does_not_help(official: dict[str, ReleaseFindings]) -> None:
    told = official["ACSCoverage"]
    f1 = effect(told, "f1")
    assert (round(100 * f1.mean, 1), round(100 * f1.worst, 1), f1.cells, f1.seeds) == (-13.2, -22.5, 126, 20)
    against = told.split["uniform"]
    assert {key: against[key].better for key in (*UTILITY, *FAIRNESS)} == {
        "acc": 8,
        "f1": 9,
        "auc_hard": 9,
        "recall": 11,
        "sp": 62,
        "di": 61,
        "eo": 62,
        "oad": 6,
    }
    assert {each.cells for each in against.values()} == {63}


@pytest.mark.check
@NEEDS_TABLES
def test_with_random_attributes_grr_is_no_longer_among_the_best() -> None:
    told = {each.data: each for each in answers(published(SHARED / "ldp_official_appendix_seeds.csv.gz"))}
    assert [each.protocol for each in told["LSAC"].standings].index("grr") == 4
    assert "ss" in next(each for each in told["adult"].standings if each.protocol == "grr").ahead


SWEPT = """
[scenario]
name = "made-up"
game = "release"
trials = 6
[data]
source = "lsac-coded:db_LSAC.csv"
[release]
protocol = "grr"
[[sweep]]
"release.protocol" = ["clean", "dropped", "constant"]
"release.split" = ["uniform"]
"release.epsilon" = ["inf"]
[[sweep]]
"release.protocol" = ["grr", "ss", "blh", "the-server"]
"release.split" = ["uniform", "k-based"]
"release.epsilon" = [0.5, 4, 50]
"""


def swept_lines(seeds: int = 6) -> Rows:
    """Lines of a whole study, whose utility grows along epsilon and falls from protocol to protocol."""
    rng = np.random.default_rng(5)
    lines = []
    controls = [(protocol, "uniform", "inf", 0.0) for protocol in ("clean", "dropped", "constant")]
    cells = [
        (protocol, split, epsilon, 0.01 * place)
        for place, protocol in enumerate(("grr", "ss", "blh", "the-server"))
        for split in ("uniform", "k-based")
        for epsilon in (0.5, 4, 50)
    ]
    for (protocol, split, epsilon, loss), seed in itertools.product(controls + cells, range(seeds)):
        values = rng.normal(0.8 - loss, 0.001, len(METRICS) + 1)
        lines.append(
            {"release.protocol": protocol, "release.split": split, "release.epsilon": epsilon}
            | {"protocol": protocol, "split": split, "epsilon": epsilon, "split_seed": seed, "trial": seed}
            | dict(zip((*METRICS.values(), "auc"), map(float, values), strict=True))
            | {"people": 80, "epsilon_protected": 1.0, "consistent": 1.0 if protocol in ("grr", "ss") else 0.25}
            | {"leakage_baseline": 60.0}
            | dict.fromkeys(("leakage_release", "leakage"), None if protocol in ("dropped", "constant") else 70.0)
        )
    return lines


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Make a run of a study, and a file of its figures."""
    folder = tmp_path_factory.mktemp("study")
    rows = [
        {"dataset": "LSAC", "seed": line["split_seed"]}
        | {key: line[key] for key in ("protocol", "split", "epsilon")}
        | {name: line[key] for name, key in METRICS.items()}
        for line in swept_lines()
        if line["epsilon"] != "inf" and line["protocol"] != "the-server"
    ]
    return run_of(folder, swept_lines(), SWEPT), file_of(folder, rows)


def test_a_run_is_reported_with_its_figures_and_the_questions(study: tuple[Path, Path]) -> None:
    folder, _ = study
    sweep = read(str(folder / "scenario.toml"))
    from sim.runs.trials import summarise

    lines = swept_lines()
    made = page(sweep, lines, summarise(sweep, lines))
    sections = {each.name: each for each in made.sections}
    assert list(sections) == ["questions-LSAC", "protocols-LSAC", "figures-LSAC", "cells"]
    said = list(sections["questions-LSAC"].conclusions)
    assert [text.partition(":")[0] for text in said] == ["RQ1", "RQ1, here", "RQ2", "RQ2, here", "RQ3", "RQ3, here"]
    assert "Correlation of inconsistent profiles with a worse rank: " in said[-1]
    figures = sections["figures-LSAC"].figures
    assert [figure.name for figure in figures] == ["fairness-lsac", "utility-lsac", "guesses-lsac"]
    drawn = []
    for figure in figures:
        # A panel a split, and one legend.
        canvas = Canvas()
        figure.draw(canvas)
        drawn.append([text.get_text() for text in canvas.findobj(Text)])
        assert [drawn[-1].count(name) for name in ("uniform", "k-based")] == [1, 1]
        assert [drawn[-1].count(name) for name in ("GRR", "THE (server thresholds)")] == [1, 1]
        assert "published" not in drawn[-1]
    assert drawn[0].count("clean (NonDP)") == drawn[1].count("columns dropped") == 1
    assert "published" not in figures[0].caption


def test_one_protocol_along_epsilon_is_drawn_and_no_study(study: tuple[Path, Path]) -> None:
    from sim.runs.trials import summarise

    sweep = read(str(study[0] / "scenario.toml"))
    lines = [line for line in swept_lines() if line["protocol"] == "grr" and line["split"] == "uniform"]
    made = page(sweep, lines, summarise(sweep, lines))
    assert [each.name for each in made.sections] == ["figures-LSAC", "cells"]
    single = [line for line in lines if line["epsilon"] == 4]
    assert [each.name for each in page(sweep, single, summarise(sweep, single)).sections] == ["cells"]


@pytest.mark.slow
def test_a_part_with_something_else_swept_is_told_apart(study: tuple[Path, Path], tmp_path: Path) -> None:
    from sim.runs.trials import summarise

    scenario = SWEPT.replace('"release.split"', '"developer.trees" = [10, 20]\n"release.split"')
    (tmp_path / "scenario.toml").write_text(scenario)
    sweep = read(str(tmp_path / "scenario.toml"))
    lines: list[dict[str, Any]] = [line | {"developer.trees": trees} for trees in (10, 20) for line in swept_lines()]
    made = page(sweep, lines, summarise(sweep, lines))
    said = [text.partition(":")[0] for text in made.sections[0].conclusions]
    assert said[:3] == ["RQ1", "RQ1, trees 10", "RQ1, trees 20"]
    assert len(made.sections[2].figures) == 6


@pytest.mark.check
def test_the_command_writes_a_page_with_published_figures_beside(study: tuple[Path, Path], tmp_path: Path) -> None:
    folder, file = study
    done = fairwall("papers", "compare", folder, file, "--page", tmp_path / "page.html")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-2:] == [
        "agrees; a reproduction takes 300 cells in 3 seeds or more each",
        f"page: {tmp_path / 'page.html'}",
    ]
    assert max(map(len, done.stdout.splitlines()[:-1])) <= 80
    for question in ("RQ1", "RQ2", "RQ3"):
        assert f"{question}, LSAC: " in done.stdout
    assert done.stdout.count("\n  paper: ") == done.stdout.count("\n  published: ") == 3
    made = (tmp_path / "page.html").read_text()
    assert made.count("<svg") == made.count(">published<") - made.count(">published</td>") == 2
    assert "published.csv.gz" in made
    refused = fairwall("papers", "compare", folder, file, "--page", tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == f"fairwall: --page {tmp_path}: cannot be written: Is a directory\n"
    # The same bytes again.
    fairwall("papers", "compare", folder, file, "--page", tmp_path / "again.html")
    assert (tmp_path / "again.html").read_text() == made


def test_another_learner_s_clean_models_stand_in_for_no_published_ones(
    study: tuple[Path, Path], tmp_path: Path
) -> None:
    _, file = study
    run = run_of(tmp_path, swept_lines(), SWEPT + "[developer]\ntrees = 20\n")
    said = fairwall("papers", "compare", run, file).stdout
    assert "\n  published: cannot say: in no seed are there a clean trial\n" in said


def test_any_table_has_a_name(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(SWEPT.replace("lsac-coded:db_LSAC.csv", "/some/where/mine.csv"))
    figures = of_run(read(str(tmp_path / "scenario.toml")), swept_lines(), table_name)
    assert {each.data for each in figures} == {"mine.csv"}
