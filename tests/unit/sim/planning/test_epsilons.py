"""The page to choose epsilon by: its figures are those of other commands, and its slider finds the least that does."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from fairwall.laws.choice.prediction import SHRUNK
from fairwall.laws.metrics.sensitivity import LabelGroupCounts
from fairwall.laws.privacy.exposure import revealed
from sim.cli.plan.choice_page import render
from sim.deployment.recommendation import recommend
from sim.planning import PlanError, audit
from sim.planning.answer_laws import PlannedBatch
from sim.planning.audit import EPSILONS, Bought, EpsilonChoices, choices, make
from tests.support.browser import AXE, cut_off, grave_faults, launched
from tests.support.command import fairwall

SMALL = LabelGroupCounts(n00=90, n01=310, n10=120, n11=280)
LAPLACE = PlannedBatch("sp", SMALL, 1, 0.5, 0.0, "laplace", "clamp", 0.6)
LOANS = Path(__file__).parents[4] / "docs" / "example" / "loans.csv"
ASKED = ("plan", "audit", "--data", str(LOANS), "--protected", "group", "--target", "repaid")


@pytest.fixture
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at fewer epsilons, at either end of what is of use."""
    monkeypatch.setattr(audit, "EPSILONS", EPSILONS[::8])


def least(found: EpsilonChoices, width: float) -> float | None:
    """The rule, once more."""
    enough = [one.epsilon for one in found.bought if one.reach is not None and one.reach <= width]
    return min(enough, default=None)


@pytest.mark.check
@pytest.mark.usefixtures("coarse")
def test_figures_are_those_of_a_plan_at_each_epsilon() -> None:
    asked = replace(LAPLACE, mechanism="counts")
    found = choices(asked)
    assert [one.epsilon for one in found.bought] == sorted({*audit.EPSILONS, asked.epsilon})
    for one in found.bought[::2]:
        assert one.reach == make(replace(asked, epsilon=one.epsilon), 0.05).reach
    reaches = [one.reach or 2.0 for one in found.bought]
    assert reaches == sorted(reaches, reverse=True)
    for before, after in pairwise(found.bought):
        assert before.one_person < after.one_person
        assert (before.revealed or 1.0) <= (after.revealed or 0.0) <= after.one_person


@pytest.mark.check
@pytest.mark.usefixtures("coarse")
def test_figures_of_what_is_recommended_are_those_of_both_plans_and_keep_the_limit() -> None:
    asked = replace(LAPLACE, mechanism="recommended", queries=10)
    found = choices(asked)
    for one in found.bought[::2]:
        plan = make(replace(asked, epsilon=one.epsilon), 0.05)
        assert (one.reach, one.mechanism) == (plan.reach, plan.batch.mechanism)
        for limit, told in ((0.6, one.revealed), (1.0, one.unlimited)):
            assert told == recommend("sp", 800, 10, one.epsilon, 0.0, 0.05, 0.5, limit).revealed
    assert max(one.revealed or 1.0 for one in found.bought) <= 0.6 < (found.bought[-1].unlimited or 0.0)


@pytest.mark.usefixtures("coarse")
def test_what_is_revealed_is_told_of_the_smallest_stratum_as_compliance_tells_it() -> None:
    few = LabelGroupCounts(n00=900, n01=1500, n10=40, n11=60)
    asked = PlannedBatch("eodds_max", few, 1, 10.0, 0.0, "laplace", "clamp", 0.6)
    assert asked.exposed == 200
    (told,) = (one.revealed for one in choices(asked).bought if one.epsilon == 10.0)
    assert told == revealed("laplace", "eodds_max", 200, 1, 10.0) != revealed("laplace", "eodds_max", 2500, 1, 10.0)


@pytest.mark.usefixtures("coarse")
def test_the_least_epsilon_is_found_and_the_slider_goes_beyond_what_is_reached() -> None:
    found = choices(replace(LAPLACE, epsilon=0.7), 0.123)
    assert found.start == 0.123
    assert 0.7 in [one.epsilon for one in found.bought], "an epsilon that is asked about is looked at"
    for width in found.widths:
        row = found.least(width)
        assert (None if row is None else found.bought[row].epsilon) == least(found, width)
    assert found.least(found.widths[0]) is None
    assert found.least(found.widths[-1]) is not None
    assert choices(replace(LAPLACE, epsilon=4.0)).start == make(replace(LAPLACE, epsilon=4.0), 0.05).reach


def test_where_more_epsilon_errs_more_the_least_that_is_enough_is_still_the_least() -> None:
    rows = [Bought(e, "counts", reach, 0.1, 0.5, 0.5, 0.6) for e, reach in ((1, None), (2, 0.2), (3, 0.3), (4, 0.1))]
    found = EpsilonChoices(LAPLACE, rows, [], 0.1)
    assert [found.least(width) for width in (0.05, 0.1, 0.2, 0.25, 0.3)] == [None, 3, 1, 1, 1]


@pytest.mark.check
@pytest.mark.usefixtures("coarse")
def test_epsilons_that_a_mechanism_refuses_are_left_out_but_not_the_one_that_is_asked() -> None:
    asked = replace(LAPLACE, mechanism="conceal-laplace", delta=1e-6)
    assert max(one.epsilon for one in choices(asked).bought) < 1
    with pytest.raises(PlanError, match="below 1"):
        choices(replace(asked, epsilon=2.0))


def test_the_same_choices_make_the_same_page_and_nothing_in_it_is_a_tag() -> None:
    rows = [Bought(1.0, "</script><b>", None, None, None, None, 0.73), Bought(2.0, "b", None, None, None, None, 0.88)]
    found = EpsilonChoices(LAPLACE, rows, [0.05, 0.06], 0.05)
    page = render(found, "<i>loans")
    assert page == render(found, "<i>loans")
    assert "<i>" not in page
    assert "<b>" not in page
    assert "Keep this page where the protected attributes are" in page


def test_what_is_promised_of_counts_is_not_said_of_answers_that_are_moved() -> None:
    for name, moved in (("counts", False), ("counts" + SHRUNK, True)):
        found = EpsilonChoices(LAPLACE, [Bought(1.0, name, 0.05, 0.01, 0.5, 0.5, 0.73)], [0.05], 0.05)
        page = render(found, "loans")
        assert "95 of 100 answers by counts are within 0.05" in page
        assert (page.count("may be missed by more") == 2) is moved


def test_what_cannot_be_a_page_is_said_in_one_line(tmp_path: Path) -> None:
    for options, said in [
        ((), "Missing option '--epsilon': without --html it must be given"),
        (("--epsilon", "1"), "Missing option '--within': without --html it must be given"),
        (("--html", "absent/page.html"), "--html: there is no folder absent"),
        (("--html", "."), "--html"),
        (("--html", "page.html", "--json"), "leave out --json and --budget"),
        (("--html", "page.html", "--budget", "3"), "leave out --json and --budget"),
        (("--html", "page.html", "--within", "2"), "--within: must be above 0 and below 2"),
    ]:
        finished = fairwall(*ASKED, *options, cwd=tmp_path)
        assert finished.returncode == 2
        assert said in finished.stderr
        assert finished.stderr.count("\n") == 1
        assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    finished = fairwall(*ASKED, "--models", "10", "--within", "0.05", "--html", "choose.html", cwd=folder)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout == "page: choose.html\n"
    return folder / "choose.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as started:
        yield started


def rings(tab: Any) -> list[float]:
    """Where the rings are that are shown, from left to right of each chart."""
    found: list[float] = tab.evaluate(
        "[...document.querySelectorAll('figure g[id*=\"-mark-\"]')]"
        ".filter((mark) => getComputedStyle(mark).visibility === 'visible')"
        ".map((mark) => mark.getBoundingClientRect().x)"
    )
    return found


@pytest.mark.check
def test_the_slider_leads_to_the_least_epsilon_that_is_enough(browser: Any, page: Path) -> None:
    tab, wrong = browser.new_page(viewport={"width": 1200, "height": 900}), []
    tab.on("console", lambda message: wrong.append(message.text))
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("request", lambda sent: None if sent.url == f"file://{page}" else wrong.append(sent.url))
    tab.goto(f"file://{page}")
    slider, large = tab.get_by_role("slider", name="Half-width wanted"), tab.locator(".card .large")
    assert tab.locator("#wanted").inner_text() == "0.05"
    heads = tab.locator("#grid ~ .scroll thead th").all_inner_texts()
    rows = [row.locator("td").all_inner_texts() for row in tab.locator("#grid ~ .scroll tbody tr").all()]
    near, right, one_person = (heads.index(head) for head in ("half-width", *heads[3:4], "one person: right in 100"))

    slider.focus()
    tab.keyboard.press("Home")
    assert large.all_inner_texts() == ["none", "–", "–"]
    assert rings(tab) == []
    assert "none" in slider.get_attribute("aria-valuetext")
    before: list[float] = []
    last = int(slider.get_attribute("max"))
    for step in range(1, last + 1):
        tab.keyboard.press("ArrowRight")
        if step % 6 and step != last:
            continue
        width = float(tab.locator("#wanted").inner_text())
        enough = [row for row in rows if row[near] != "–" and float(row[near]) <= width]
        if not enough:
            assert large.first.inner_text() == "none"
            continue
        row = min(enough, key=lambda row: float(row[0]))
        shown = [f"ε = {row[0]}", *(math.ceil(float(row[at])) for at in (right, one_person))]
        shown[1:] = [f"{shown[1]}% right", f"{shown[2]} right in 100"]
        assert large.all_inner_texts() == shown
        assert slider.get_attribute("aria-valuetext").startswith(f"{width:g}: ε = {row[0]}, ")
        assert tab.locator("tr[aria-current]").locator("td").all_inner_texts() == row
        assert len(rings(tab)) == 3, "one in the first chart, two in the second"
        assert all(now <= then for now, then in zip(rings(tab), before, strict=False)), "less epsilon lies to the left"
        before = rings(tab)
    assert float(row[0]) == min(float(row[0]) for row in rows)
    assert wrong == []

    plan = fairwall(*ASKED, "--models", "10", "--within", "0.05", "--epsilon", "0.5", "--json", cwd=page.parent)
    (half,) = (float(row[near]) for row in rows if row[0] == "0.5")
    assert half == pytest.approx(json.loads(plan.stdout)["within_that_holds"], rel=5e-3)
    tab.close()


@pytest.mark.check
def test_the_page_is_fit_for_everybody(browser: Any, page: Path) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: make browser")
    for width, scheme in ((1200, "light"), (390, "dark")):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        tab = context.new_page()
        tab.goto(f"file://{page}")
        tab.locator("details summary").click()
        assert cut_off(tab) == []
        assert grave_faults(tab) == [], (width, scheme)
        context.close()


@pytest.mark.check
def test_without_a_program_there_is_the_table(browser: Any, page: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(f"file://{page}")
    assert not tab.locator("#chooser").is_visible()
    assert tab.locator("#grid ~ .scroll tbody tr").count() == len(EPSILONS)
    assert "table below" in tab.locator("noscript").inner_text()
    context.close()


@pytest.mark.check
def test_no_program_but_the_page_s_own_may_run(browser: Any, page: Path) -> None:
    tab = browser.new_page()
    tab.goto(f"file://{page}")
    put = "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.ran = 1'}))"
    tab.evaluate(put)
    assert tab.evaluate("window.ran") is None
    tab.close()
