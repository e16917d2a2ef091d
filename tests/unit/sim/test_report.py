"""The report of a run and the table at its end: made from trials.jsonl, honest when a run broke off, and small."""

from __future__ import annotations

import html
import io
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
from matplotlib.figure import Figure as Canvas
from rich.console import Console

from fairwall.laws.privacy.most_exposed import Sure, limit
from sim.games import read
from sim.games.reveal.cells import ReportCell, loss_test_rows, report_cells
from sim.games.reveal.figures import draw_figures
from sim.report.cells import paper_figure
from sim.report.estimates import PERCENT, estimate
from sim.report.notation import number
from sim.runs.page import write_report
from sim.runs.trials import summarise
from sim.scenarios.scenario import as_values
from sim.scenarios.sweep import Cell, Sweep
from tests.support.terminal_output import terminal

DRAWN = ("conceal-attacked", "targeted", "limit-adult-100")
"""Scenarios whose pages differ in kind."""


def _trial(cell: Cell, trial: int, **changes: Any) -> dict[str, Any]:
    """Make up a line of trials.jsonl, in the shape that sim.games.reveal.trial gives it."""
    played = cell.scenario
    n, n0 = played.people, played.data.n0 or 310
    infinite = math.isinf(played.epsilon)
    queries = played.queries if isinstance(played.queries, int) else n
    rng = np.random.default_rng([trial, queries])
    error = 0.0 if infinite else float(rng.uniform(1, 2) * queries / played.epsilon)
    line: dict[str, Any] = {
        "trial": trial,
        "seed": played.scenario.seed + trial,
        "game": "reveal",
        "seconds": 0.1,
        **cell.swept,
        "n": n,
        "n0": n0,
        "n1": n - n0,
        "metric": played.compliance.metric,
        "mechanism": played.compliance.mechanism,
        "epsilon": "inf" if infinite else played.epsilon,
        "delta": 0.0,
        "queries": queries,
        "size_queries": 1,
        "strategy": played.developer.strategy,
        "decoder": played.decoder,
        "leakage": float(rng.uniform(40, 70)),
        "baseline_leakage": 60 + trial,
        "recovered": int(rng.integers(50, n)),
        "exact": False,
        "targeted": n,
        "targeted_recovered": 70,
        "max_prediction_change": 0.0999,
        "accuracy_base": 0.8,
        "accuracy_models": 0.79,
        "query_error_mean": 3 * error,
        "query_error_median": error,
        "epsilon_spent": "inf" if infinite else played.epsilon,
    }
    if trial == 0:
        exact = rng.uniform(0, 0.2, min(queries, 100))
        s = np.where(np.arange(min(n, 100)) < 10, 1 / n0 + 1 / (n - n0), 0.0)
        line["trace"] = {
            "exact": exact.tolist(),
            "released": (exact + error * rng.standard_cauchy(len(exact))).tolist(),
            "s": s.tolist(),
            "reconstruction": (s + error * rng.normal(size=len(s))).tolist(),
        }
    return line | changes


def _trials(sweep: Sweep, each: int = 3, **changes: Any) -> list[dict[str, Any]]:
    return [_trial(cell, trial, **changes) for cell in sweep.cells for trial in range(each)]


def cells_of(sweep: Sweep, trials: Sequence[dict[str, Any]]) -> tuple[ReportCell, ...]:
    return report_cells(sweep, trials, summarise(sweep, trials))


def _folder(path: Path, sweep: Sweep, trials: Sequence[dict[str, Any]], *, complete: bool = True) -> Path:
    path.mkdir(exist_ok=True)
    (path / "scenario.toml").write_text(tomli_w.dumps(as_values(sweep.scenario)))
    if trials:
        (path / "trials.jsonl").write_text("".join(json.dumps(line) + "\n" for line in trials))
    result = {"version": "0.1.0", "complete": complete, "summary": summarise(sweep, trials)}
    (path / "result.json").write_text(json.dumps(result))
    return path


def _shown(page: str) -> str:
    """Give a page's text outside its style and its drawings."""
    without = re.sub(r"<style>.*?</style>|<svg.*?</svg>", "", page, flags=re.DOTALL)
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", without))).replace("\u00a0", " ")


def _report(path: Path, sweep: Sweep, trials: Sequence[dict[str, Any]], *, complete: bool = True) -> str:
    return write_report(_folder(path, sweep, trials, complete=complete)).read_text(encoding="utf-8")


def _confined(folder: Path, *starts: dict[str, Any]) -> str:
    """Write what confined the parties each time that they were started; the report's text."""
    result = json.loads((folder / "result.json").read_text())
    (folder / "result.json").write_text(json.dumps(result | {"confinement": starts}))
    return _shown(write_report(folder).read_text(encoding="utf-8"))


def _layers(*active: str, **why_not: str) -> list[dict[str, Any]]:
    held = [{"name": name, "active": True, "why_not": ""} for name in active]
    return held + [{"name": name, "active": False, "why_not": why} for name, why in why_not.items()]


WALLED = {
    "referee": _layers("limits", "non-dumpable"),
    "compliance": _layers("limits", "no-capabilities", "non-dumpable"),
    "developer": _layers("limits", "no-capabilities", "landlock", "non-dumpable"),
    "adversary": _layers("limits", "no-capabilities", "landlock", "non-dumpable"),
}


def test_the_page_tells_which_layers_were_active_around_whom_and_warns_of_those_that_were_not(tmp_path: Path) -> None:
    sweep = read("demo", ["scenario.trials=3"])
    folder = _folder(tmp_path / "run", sweep, _trials(sweep))
    assert "confinement" not in _shown(write_report(folder).read_text(encoding="utf-8"))
    text = _confined(folder, WALLED)
    assert (
        "Layers of confinement that were active Around referee: limits and non-dumpable. "
        "Around compliance: limits, no-capabilities and non-dumpable. "
        "Around developer and adversary: limits, no-capabilities, landlock and non-dumpable. "
        "What each stops: docs/confinement.md."
    ) in text
    assert "Warning" not in text
    # The second time elsewhere: what was not active once is no wall of the run.
    open_ = {"landlock": "no Landlock here: <none>", "scope": "no Landlock here: <none>"}
    outside = _layers("limits", "no-capabilities", "non-dumpable", **open_)
    text = _confined(folder, WALLED, WALLED | {"developer": outside, "adversary": outside})
    assert "Around compliance, developer and adversary: limits, no-capabilities and non-dumpable." in text
    assert "Parties were started more than once: these were active each time." in text
    assert (
        "Warning: layers of confinement that were not active "
        "landlock and scope around developer and adversary (no Landlock here: <none>)."
    ) in text


def test_the_layers_of_another_program_are_its_own_claim(tmp_path: Path) -> None:
    sweep = read("demo", ["scenario.trials=3", "scenario.secret=random"])
    folder = _folder(tmp_path / "run", sweep, _trials(sweep))
    result = json.loads((folder / "result.json").read_text())
    command = "python mine.py <&>"
    (folder / "result.json").write_text(json.dumps(result | {"programs": {"developer": command}}))
    text = _confined(folder, WALLED | {"adversary": []})
    claimed = "Around developer: limits, no-capabilities, landlock and non-dumpable, as the program itself says."
    assert claimed in text
    assert "Around adversary: no layer." in text
    assert f"Program in developer's place {command}" in text
    assert "Programs that are not fairwall's: developer" in text


def test_the_page_says_whether_a_party_could_recompute_the_draws(tmp_path: Path) -> None:
    for secret, can in (("seed", True), ("random", False)):
        sweep = read("demo", ["scenario.trials=3", f"scenario.secret={secret}"])
        text = _shown(write_report(_folder(tmp_path / secret, sweep, _trials(sweep))).read_text(encoding="utf-8"))
        assert ("Draws that a party could recompute" in text) is can
        assert f"Secret {secret}: cards, seeds and noise follow from the seed" in text


def require_whole(page: str) -> None:
    """Demand that a page needs nothing but itself."""
    assert "incomplete" not in page
    assert not re.findall(r"""(?:src|href)\s*=\s*["'](?!#|data:text/csv)[^"']*""", page), "links out of the page"
    assert not re.findall(r"url\((?!#)[^)]*\)|@import|<script|<link|<image", page), "resources outside the page"
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids)), "an id that occurs twice"
    assert set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', page)) <= {(i, "") for i in ids} | {("", i) for i in ids}


@pytest.mark.check
@pytest.mark.usefixtures("rendered")
@pytest.mark.parametrize("name", DRAWN)
def test_every_kind_of_scenario_gets_a_page_that_needs_nothing_else(name: str, tmp_path: Path) -> None:
    """That of the demo does in every run of the tests: see `test_said_right`."""
    sweep = read(name, ["scenario.trials=3"])
    page = _report(tmp_path / "run", sweep, _trials(sweep))
    require_whole(page)
    assert str(tmp_path) not in page


def test_a_report_says_who_is_worst_off(tmp_path: Path) -> None:
    """Of randomised response, which is as right as it is sure, with groups of unequal sizes."""
    settings = ["scenario.trials=3", "compliance.epsilon=[1.0, 5.0]", "compliance.mechanism=randomized-response"]
    sweep = read("conceal-attacked", settings)
    rng, trials = np.random.default_rng(3), _trials(sweep)
    for line in trials:
        protected = (rng.random(20_000) < 0.9).astype(np.uint8)
        sure = 1 / (1 + math.exp(-float(line["epsilon"])))
        told = np.where((protected == 0) ^ (rng.random(20_000) > sure), sure, 1 - sure)
        counted = Sure.of(told, protected)
        line["sure"] = [counted.disadvantaged.tolist(), counted.advantaged.tolist()]
    cells = cells_of(sweep, trials)
    for cell in cells:
        factor, right = cell.summary["surest_factor"], cell.summary["surest_right"]
        assert factor == pytest.approx(math.exp(cell.epsilon))
        assert right == pytest.approx(factor / (1 + factor), abs=0.05)
        assert cell.summary["person_risk"] == pytest.approx(limit(cell.epsilon / 2), rel=0.3)
    (figure,) = (one for one in draw_figures(cells) if one.name == "confidence")
    canvas = Canvas()
    figure.draw(canvas)
    keys = [text.get_text() for legend in canvas.legends for text in legend.get_texts()]
    assert "guarantee, e^(2ε)/(1+e^(2ε))" in keys
    shown = _shown(_report(tmp_path / "run", sweep, trials))
    assert "odds of the 100 most exposed, times" in shown
    assert "2.72 of 7.39" in shown
    assert "148 of 22,000" in shown


def test_the_table_recomputes_from_the_trials(tmp_path: Path) -> None:
    sweep = read("reveal-adult-100", ["scenario.trials=6", "developer.queries=[25, 40]"])
    trials = _trials(sweep, 6)
    page = _report(tmp_path / "run", sweep, trials)
    body = re.search(r"<tbody[^>]*>(.*?)</tbody>", page, re.DOTALL)
    assert body is not None
    rows = [re.findall(r"<td[^>]*>(?:<a [^>]*>)?([^<]*)<", row) for row in body.group(1).split("</tr>")[:-1]]
    for queries, printed, row in ((25, "63", rows[0]), (40, "100", rows[1])):
        lines = [line for line in trials if line["queries"] == queries]
        leakage = [line["leakage"] for line in lines]
        assert len(leakage) == 6
        assert row[0] == str(queries)
        assert row[1] == str(estimate(leakage, PERCENT))
        assert row[1].startswith(f"{np.mean(leakage):.1f}\u00a0(")
        assert row[2].startswith("62.5\u00a0(")
        assert row[3] == "0/6"
        assert float(row[4]) == pytest.approx(np.mean([line["recovered"] for line in lines]), abs=0.051)
        assert re.search(rf"m {queries} leakage, % {printed} ", _shown(page).partition("Beside the printed figures")[2])


def test_fewer_than_five_trials_have_no_interval(tmp_path: Path) -> None:
    each = 4
    settings = [f"scenario.trials={each}", "developer.strategy=best", "compliance.epsilon=100.0"]
    sweep = read("demo", settings)
    loss_test = {"attack": "loss-test", "accuracy_advantaged": 0.9, "accuracy_disadvantaged": 0.5, "gap_base": 40.0}
    trials = _trials(sweep, each, **loss_test)
    text = _shown(_report(tmp_path / "run", sweep, trials))
    assert "fewer than 5 trials give no interval" in text
    assert f"played {each} trial" in text
    assert "Fewer than 5 trials say nothing about what the answers added." in text
    assert not _intervals(text)
    assert not _intervals(_printed(sweep, trials))


def _intervals(text: str) -> list[tuple[float, float]]:
    """Find all intervals in a text."""
    ends = re.findall(r"(−?[\d.]+)(?:–| to )(−?[\d.]+)(?=[);])", text)
    return [(float(low.replace("−", "-")), float(high.replace("−", "-"))) for low, high in ends]


def test_no_interval_leaves_what_is_possible(tmp_path: Path) -> None:
    # As in a run that a t interval made "90.0 ± 127.1%" of.
    sweep = read("demo", ["scenario.trials=5", 'developer.strategy=["best", "sensing"]', "compliance.epsilon=100.0"])
    loss_test = {"attack": "loss-test", "accuracy_disadvantaged": 1.0, "gap_base": 0.0}
    trials = [
        _trial(cell, i, **loss_test, accuracy_advantaged=float(i < 4), leakage=value, baseline_leakage=100 - value)
        for cell in sweep.cells
        for i, value in enumerate([100.0, 50.0, 100.0, 100.0, 100.0])
    ]
    page = _shown(_report(tmp_path / "run", sweep, trials))
    found = [*_intervals(page), *_intervals(_printed(sweep, trials))]
    assert len(found) > 8
    assert all(-100 <= low < high <= 100 for low, high in found), "in percent, and in points what the answers added"
    assert sum(low < 0 for low, _ in found) <= 1
    assert max(high for _, high in found) == 100
    assert "±" not in page


def test_an_incomplete_run_says_so(tmp_path: Path) -> None:
    sweep = read("reveal-adult-100", ["scenario.trials=2", "developer.queries=[10, 25]"])
    text = _shown(_report(tmp_path / "some", sweep, _trials(sweep, 2)[:3], complete=False))
    assert "This run is incomplete: 3 of 4 planned trials finished." in text
    text = _shown(_report(tmp_path / "marked", sweep, _trials(sweep, 2)[:3], complete=True))
    assert "This run is incomplete" in text, "whatever result.json says"
    text = _shown(_report(tmp_path / "none", sweep, [], complete=False))
    assert "No trial finished, of 4 planned." in text
    (tmp_path / "none" / "result.json").unlink()
    assert "No trial finished" in _shown(write_report(tmp_path / "none").read_text())


@pytest.mark.check
@pytest.mark.usefixtures("rendered")
def test_the_same_run_gives_the_same_bytes(tmp_path: Path) -> None:
    sweep = read("demo", ["scenario.trials=2", "compliance.epsilon=10.0"])
    trials = _trials(sweep, 2)
    assert _report(tmp_path / "a", sweep, trials) == _report(tmp_path / "b", sweep, trials)


def test_what_a_scenario_says_is_escaped(tmp_path: Path) -> None:
    nasty = '<script>alert("&amp;")</script>'
    sweep = read(
        "demo", ["scenario.trials=1", "developer.queries=[10,25]", f"scenario.name={nasty}", f"scenario.about={nasty}"]
    )
    page = _report(tmp_path / "run", sweep, _trials(sweep, 1))
    assert "<script" not in page
    assert html.escape(nasty, quote=False).replace('"', "&#34;") in page


def test_exact_answers_and_the_baseline_stand_side_by_side(tmp_path: Path) -> None:
    settings = ["scenario.trials=5", "developer.strategy=sensing", "developer.queries=[10, 50]"]
    sweep = read("demo", [*settings, 'compliance.epsilon="inf"'])
    trials = [_trial(sweep.cells[0], i) for i in range(5)]
    trials += [_trial(sweep.cells[1], i, leakage=100.0, exact=True, recovered=100) for i in range(5)]
    text = _shown(_report(tmp_path / "run", sweep, trials))
    assert "With 50 exact answers (the highest leakage of 2 cells without noise), " in text
    before = str(estimate([60.0, 61.0, 62.0, 63.0, 64.0], PERCENT)).replace("\u00a0", " ").replace("62.0", "62.0%")
    often = "in 5 of 5 trials (95% interval 48–100% of trials)"
    assert (
        f"knew everybody's race {often}; before any question it was, counting both groups equally, {before} right"
        in text
    )


def test_a_verdict_claims_what_its_interval_allows(tmp_path: Path) -> None:
    sweep = read("demo", ["scenario.trials=5", "developer.queries=40", "compliance.epsilon=100.0"])
    for gain, words in (
        ([9.0, 10.0, 11.0, 10.0, 9.5], "points (9.0–10.8) above what it knew"),
        ([-9.0, -10.0, -11.0, -10.0, -9.5], "points (9.0–10.8) below what it could guess"),
        ([-9.0, 1.0, 9.0, 0.0, 2.0], "cannot be told from none"),
    ):
        trials = [_trial(sweep.cells[0], i, leakage=60 + g, baseline_leakage=60.0) for i, g in enumerate(gain)]
        assert words in _shown(_report(tmp_path, sweep, trials))


def test_printed_figures_are_found_by_value_not_by_axis() -> None:
    swept = read("conceal-adult-100")
    assert all(paper_figure(cell.scenario) is not None for cell in swept.cells)
    fixed = read("conceal-adult-100", ["developer.queries=25", 'compliance.epsilon="inf"'])
    assert [paper.leakage for cell in fixed.cells if (paper := paper_figure(cell.scenario))] == [63, 63]
    other = read("conceal-adult-100", ["developer.queries=30"])
    assert not any(paper_figure(cell.scenario) for cell in other.cells)


def test_the_loss_test_counts_each_model_once(tmp_path: Path) -> None:
    sweep = read("demo", ["scenario.trials=3"])
    trials = _trials(sweep, attack="loss-test", accuracy_advantaged=0.86, accuracy_disadvantaged=0.92, gap_base=6.0)
    (row,) = loss_test_rows(cells_of(sweep, trials))
    assert row.models == 3
    assert row.gap.mean == pytest.approx(6.0)
    assert "right for 86.0% of the advantaged" in _shown(_report(tmp_path / "run", sweep, trials))
    swept = read("demo", ["scenario.trials=3", "data.n0=[5, 10]"])
    trials = _trials(swept, attack="loss-test", accuracy_advantaged=0.86, accuracy_disadvantaged=0.92, gap_base=6.0)
    assert [row.data for row in loss_test_rows(cells_of(swept, trials))] == ["n₀ = 5", "n₀ = 10"]


def test_an_absolute_gap_is_told_up_to_polarity(tmp_path: Path) -> None:
    settings = ["scenario.trials=2", "developer.strategy=absolute", "compliance.metric=abs_sp", "developer.queries=n"]
    sweep = read("reveal-adult-100", settings)
    trials = _trials(sweep, 2, leakage=100.0, exact=True, leakage_by_size=None, leakage_by_person=100.0)
    text = _shown(_report(tmp_path / "run", sweep, trials))
    assert "knew everybody's race, up to which group is which, in 2 of 2 trials" in text
    assert "one person known, %" in text
    assert "smaller group named, %" not in text


def _known(text: str) -> str:
    return text.partition('id="known"')[2]


@pytest.mark.check
def test_the_answers_until_everybody_was_known(tmp_path: Path) -> None:
    settings = ["scenario.trials=2", "compliance.precision=float64", "developer.perturbation=0.1"]
    sweep = read("limit-adult-100", settings)
    trials = []
    for cell in sweep.cells:
        strategy, decoder, queries = (cell.swept[f"developer.{key}"] for key in ("strategy", "decoder", "queries"))
        for i in range(2):
            # l1 knows everybody from 50 queries on in both trials, and from 40 in one.
            exact = strategy != "sensing" or decoder != "l1" or queries >= 50 or (queries == 40 and i == 0)
            asks = {"best": 2 + i, "packed": 4, "linear": 99}.get(strategy, queries)
            own = {"queries": asks, "size_queries": int(strategy != "linear"), "answers_bound": 1, "flagged": 0}
            trials.append(_trial(cell, i, exact=exact and decoder != "box", **own))
    page = _report(tmp_path / "run", sweep, trials)
    body = re.search(r"<tbody[^>]*>(.*?)</tbody>", _known(page), re.DOTALL)
    assert body is not None
    rows = [re.findall(r"<td[^>]*>(?:<a [^>]*>)?([^<]*)<", row) for row in body.group(1).split("</tr>")[:-1]]
    assert rows == [
        ["best", "own", "4", "–"],
        ["packed", "own", "5", "–"],
        ["meet", "own", "2", "–"],
        ["sensing", "l1", "51", "40"],
        ["sensing", "box", "more than 51", "–"],
        ["sensing", "ep", "31", "–"],
        ["linear", "own", "99", "–"],
    ]
    assert "The same in every row: least ever 1." in _shown(_known(page))
    assert "sensing, box: more than 51, at least 1" in page, "the figure's words for who cannot see it"
    assert "3.5 ≤4" in _shown(page), "answers asked"


def test_a_single_cell_is_compared_with_nothing(tmp_path: Path) -> None:
    sweep = read("hidden-adult-100", ["scenario.trials=2"])
    trials = _trials(sweep, 2, exact=True, queries=3, answers_bound=1, leakage=100.0)
    text = _shown(_report(tmp_path / "run", sweep, trials))
    assert "Answers until everybody was known" not in text
    assert "was dealt neither these people's features nor their labels" in text
    assert "Neither features nor labels of the test set" in text


def test_an_attack_that_stops_by_itself_is_said_to(tmp_path: Path) -> None:
    sweep = read("hidden-adult-100", ["scenario.trials=2"])
    trials = [
        _trial(sweep.cells[0], i, exact=True, queries=3 + i, answers_bound=1, leakage=100.0, recovered=100)
        for i in range(2)
    ]
    text = _shown(_report(tmp_path / "run", sweep, trials))
    assert "With at most 5 exact answers, the developer knew everybody's race in 2 of 2 trials" in text
    assert "as many as it takes" in text


def test_what_else_is_public_is_said(tmp_path: Path) -> None:
    settings = ["compliance.precision=4", 'developer.knows=["n0"]', "compliance.differencing=3"]
    sweep = read("reveal-adult-100", [*settings, "developer.queries=40", "developer.public_sample=2000"])
    trials = _trials(sweep, 2, leakage_features=60.0, leakage_answers=55.0, flagged=1)
    text = _shown(_report(tmp_path / "run", sweep, trials))
    assert "Answers written as 4 decimals" in text
    assert "Models flagged if they differ from an earlier one in 1 to 3 people" in text
    assert "how many people are disadvantaged, and 2,000 public people with their groups" in text
    assert "how precise answers are" not in text
    assert "each person is guessed by a predictor of the group that is learnt from the public people" in text
    assert "together, %" in text
    assert "features, %" in text
    assert "answers, %" in text


def test_one_person_is_drawn_by_how_often_they_are_right(tmp_path: Path) -> None:
    sweep = read("targeted", ["scenario.trials=4"])
    trials = [
        _trial(cell, i, targeted=1, targeted_recovered=int(i < 3), target_advantaged=i % 2 == 0)
        for cell in sweep.cells
        for i in range(4)
    ]
    text = _report(tmp_path / "run", sweep, trials)
    assert "How often the person aimed at is guessed right" in text
    assert "Leakage against" not in text
    assert "was right about that person in 3 of 4 trials." in _shown(text)


@pytest.mark.check
def test_many_mechanisms_share_a_figure_for_each_attack(tmp_path: Path) -> None:
    sweep = read("conceal-attacked", ["scenario.trials=2"])
    page = _report(tmp_path / "run", sweep, _trials(sweep, 2))
    titles = re.findall(r"<h3>(Leakage[^<]*)</h3>", page)
    assert titles == ["Leakage against ε, sensing, l1", "Leakage against ε, best"]


def test_any_key_can_be_swept(tmp_path: Path) -> None:
    settings = ["scenario.trials=2", "data.n0=[5, 50]", 'developer.decoder=["l1", "lstsq"]', "compliance.epsilon=100.0"]
    sweep = read("demo", [*settings, "developer.strategy=sensing"])
    page = _report(tmp_path / "run", sweep, _trials(sweep, 2))
    assert "Leakage against n₀" in page
    assert "decoder = lstsq" in page


@pytest.mark.parametrize("name", ["demo", "targeted", "limit-adult-100", "conceal-adult-100"])
def test_the_terminal_table_fits_80_columns(name: str) -> None:
    sweep = read(name)
    for each in (0, 1, 2):
        assert "…" not in _printed(sweep, _trials(sweep, each))


@pytest.mark.parametrize("name", ["demo", "limit-adult-100", "bayes-limit"])
def test_b7_a_narrow_terminal_keeps_the_columns_of_errors(name: str) -> None:
    sweep = read(name)
    text = _printed(sweep, _trials(sweep, 2, query_error_mean=0.25, query_error_median=0.125))
    assert "0.125   0.25" in text or "0.125  0.25" in text


def test_a_crowded_terminal_table_still_fits() -> None:
    settings = ["developer.perturbation=[0.05, 0.1]", "data.n0=[5, 10]", 'developer.decoder=["l1", "lstsq"]']
    sweep = read("conceal-adult-100", [*settings, "compliance.epsilon=[10.0, 1000.0]"])
    trials = _trials(sweep, 1, query_error_mean=1.5e9, query_error_median=2e-9)
    _printed(sweep, trials)


def _printed(sweep: Sweep, trials: Sequence[dict[str, Any]]) -> str:
    file = io.StringIO()
    Console(width=80, file=file).print(terminal(sweep, trials, summarise(sweep, trials)))
    assert max(map(len, file.getvalue().splitlines())) <= 80
    return file.getvalue()


def test_the_terminal_table_shows_the_papers_figures_and_infinity() -> None:
    sweep = read("conceal-adult-100")
    text = _printed(sweep, _trials(sweep, 2))
    assert "0.00005" in text
    assert "∞" in text
    assert "No trial finished" in _printed(sweep, [])


def test_numbers() -> None:
    for value, text in (
        (None, "–"),
        (math.nan, "–"),
        ("inf", "∞"),
        (0, "0"),
        (1552.8575, "1,550"),
        (0.0756, "0.0756"),
        (5e-05, "0.00005"),
        (-12.34, "−12.3"),
        (1.5e9, "1.5×10⁹"),
        (2.04e-9, "2.04×10⁻⁹"),
        (999.96, "1,000"),
        (100, "100"),
    ):
        assert number(value) == text
