"""Pages of runs in a real browser: they open, step, filter, show, lead on, fetch nothing, and are fit for everybody."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.rpc.turns import collect
from fairwall.wire.v1.error_pb2 import REASON_BUDGET_EXHAUSTED
from sim.replay.recorded import deals_of
from sim.transcripts.files import read
from sim.verify.byte_search import NARROW, WIDE, ByteSearch, SoughtColumn
from sim.viewer.page import Other, open_run, page
from sim.viewer.visibility import Sight
from tests.support import command
from tests.support.browser import AXE, CHROMIUM, grave_faults
from tests.support.recorded_runs import AUDIT, Said, audited, record
from tests.support.viewer_page import Viewed

HOSTILE = '</script><script>alert(1)</script><img src=x onerror="alert(1)"><b>bold</b>'
HOSTILE_ID = "".join(letter if letter.isalnum() or letter in "_-" else "-" for letter in HOSTILE)
WIDTHS, SCHEMES = (1400, 390), ("light", "dark")

if CHROMIUM is None:
    pytest.skip("no browser is installed: chromium", allow_module_level=True)
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed", exc_type=ImportError)


@dataclass
class Window:
    """A window of the browser, and what went wrong in it or left it."""

    tab: Any
    wrong: list[str] = field(default_factory=list)

    def open(self, path: Path, address: str = "") -> None:
        """Open a page, and wait until what its address names is there."""
        self.tab.goto(f"file://{path}{address}")
        self.tab.wait_for_selector(f'body[data-ready="{address}"]')

    def texts(self, selector: str) -> list[str]:
        """The texts of elements."""
        found: list[str] = self.tab.locator(selector).all_inner_texts()
        return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as play:
        options = ["--no-sandbox", "--disable-background-networking", "--no-first-run", "--disable-sync"]
        browser = play.chromium.launch(executable_path=CHROMIUM, args=options)
        yield browser
        browser.close()


@contextmanager
def _window(browser: Any, width: int = 1400, scheme: str = "light") -> Iterator[Window]:
    size = {"width": width, "height": 900}
    context = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce")
    window = Window(context.new_page())
    window.tab.on("console", lambda message: window.wrong.append(message.text))
    window.tab.on("pageerror", lambda error: window.wrong.append(str(error)))
    window.tab.on("dialog", lambda dialog: (window.wrong.append("a dialog"), dialog.dismiss()))
    window.tab.on("request", lambda sent: None if sent.url.startswith("file:") else window.wrong.append(sent.url))
    yield window
    context.close()
    assert window.wrong == []


@pytest.fixture
def window(browser: Any) -> Iterator[Window]:
    with _window(browser) as opened:
        yield opened


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo, played small and looked at by one command."""
    folder = tmp_path_factory.mktemp("demo")
    finished = command.fairwall("view", "demo", cwd=folder)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout == "page: demo.html\n"
    return folder / "demo.html"


def _asked(number: int, deal: str = "deal-1", epsilon: float = 0.1, **given: Any) -> Said:
    return audited(number, np.linspace(0.0, 1.0, 10).reshape(1, 10), deal=deal, epsilon=epsilon, **given)


@pytest.fixture(scope="module")
def made_up(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with a refusal, hostile texts, findings, and another run beside it."""
    folder = tmp_path_factory.mktemp("made-up")
    other = _asked(1, epsilon=0.5)
    joins = Said(
        "developer",
        "referee",
        "/fairwall.game.v1.RefereeService/Join",
        [game.JoinRequest()],
        [game.JoinResponse(scenario_digest=HOSTILE)],
    )
    refused = _asked(2)
    calls = [
        joins,
        _asked(1, HOSTILE, heard=_asked(1, HOSTILE, 0.2).requests),
        Said("developer", "compliance", AUDIT, refused.requests, (), REASON_BUDGET_EXHAUSTED),
    ]
    run = open_run(record(folder / "run", calls, run=HOSTILE))
    beside = open_run(record(folder / "other", [joins, _asked(1, HOSTILE, heard=other.requests), *calls[2:]]))
    (folder / "page.html").write_text(page(run, other=Other(HOSTILE, beside.sessions)))
    return folder / "page.html"


@pytest.mark.check
def test_the_demo_opens_steps_to_its_end_filters_shows_an_array_and_leads_on(window: Window, demo: Path) -> None:
    window.open(demo)
    assert "verified" in window.texts(".badges")[0]
    squares = window.tab.locator(".square")
    assert squares.count() == 4
    assert all(text.endswith("%") for text in squares.all_inner_texts())

    squares.first.click()
    window.tab.wait_for_selector(".row")
    rows = window.tab.locator(".row")
    told = rows.count()
    for _ in range(told - 1):
        window.tab.keyboard.press("ArrowRight")
    last = window.tab.locator(".row[aria-selected=true]")
    assert last.get_attribute("aria-posinset") == last.get_attribute("aria-setsize") == str(told)
    assert "answers so far" in window.texts(".now")[0]
    window.tab.wait_for_selector(".people svg.grid")
    assert "right for" in window.texts(".people .told")[0]

    window.tab.keyboard.press("Home")
    window.tab.wait_for_url("**m=1")
    window.tab.locator("select[name=party]").select_option("adversary")
    assert 0 < rows.count() < told
    assert all("adversary" in row.get_attribute("aria-label") for row in rows.all())
    window.tab.locator("select[name=method]").select_option("Predict")
    assert rows.count() == 2
    window.tab.get_by_label("refusals alone").check()
    assert rows.count() == 0
    window.tab.get_by_label("refusals alone").uncheck()
    window.tab.locator("select[name=method]").select_option("")
    window.tab.locator("select[name=party]").select_option("")

    window.tab.get_by_label("search").fill("scores")
    rows.first.click()
    window.tab.wait_for_selector(".array-of summary")
    window.tab.locator(".array-of summary").first.click()
    window.tab.wait_for_selector(".array .strip")
    assert window.tab.locator(".array .histogram rect").count() > 10
    window.tab.locator(".array details summary").click()
    assert len(window.texts(".array .values")[0].split()) == 100
    assert window.tab.locator(".array .digest code").inner_text()

    window.tab.get_by_role("link", name="the next trial").click()
    window.tab.get_by_role("heading", name="Trial 2", exact=True).wait_for()
    window.tab.get_by_role("link", name="Findings").click()
    window.tab.get_by_role("heading", name="No findings", exact=True).wait_for()
    window.tab.go_back()
    window.tab.get_by_role("heading", name="Trial 2", exact=True).wait_for()


@pytest.mark.check
def test_an_address_leads_to_its_message(window: Window, demo: Path) -> None:
    window.open(demo, "#trial=3&m=9")
    assert window.texts("h1") == ["Trial 3"]
    window.tab.wait_for_selector(".inspector .number")
    assert re.fullmatch(r"Message \d+ of \d+ shown; 9 of \d+ in all", window.texts(".inspector .number")[0])
    window.tab.get_by_label("also messages without content").check()
    window.tab.get_by_text(re.compile(r"^Message 9 of \d+$")).wait_for()
    window.tab.get_by_role("button", name="first message").click()
    window.tab.get_by_text(re.compile(r"^Message 1 of \d+$")).wait_for()


@pytest.mark.check
def test_a_trial_begins_at_the_first_message_that_is_shown(window: Window, demo: Path) -> None:
    window.open(demo, "#trial=2")
    window.tab.wait_for_selector(".inspector .number")
    assert window.texts(".inspector .number")[0].startswith("Message 1 of ")
    assert "entry" in window.texts(".inspector .entries")[0]


@pytest.mark.check
def test_a_finding_leads_to_its_message_and_a_difference_is_opened(window: Window, made_up: Path) -> None:
    window.open(made_up, "#findings")
    window.tab.locator("table.found a").first.click()
    window.tab.wait_for_selector(".inspector .other")
    assert "different bytes" in window.texts(".inspector .record")[0]
    window.open(made_up, "#beside")
    window.tab.wait_for_selector(".compare .row[aria-selected=true]")
    assert window.texts(".compare .row[aria-selected=true] .mark") == ["≠"]
    assert window.tab.locator(".pair .inspector").count() == 2
    assert "The first that differs" in window.texts(".verdict")[0]


def test_what_was_recorded_is_text_and_nothing_else(window: Window, made_up: Path) -> None:
    shown = []
    for address in ("", "#findings", "#beside", *(f"#trial={HOSTILE_ID}&m={number}" for number in (1, 2, 3, 4))):
        window.open(made_up, address)
        assert window.tab.locator("b, img").count() == 0
        assert HOSTILE in window.texts("header")[0]
        shown += window.texts(".inspector td")
    assert shown.count(HOSTILE) >= 3, "the scenario's digest, and the deal in both sides' copies"


@pytest.mark.check
def test_of_a_long_list_only_what_is_in_view_is_in_the_page(window: Window, tmp_path: Path) -> None:
    (tmp_path / "long.html").write_text(page(open_run(record(tmp_path / "run", map(_asked, range(1100))))))
    window.open(tmp_path / "long.html", "#trial=1")
    assert window.tab.locator(".row").count() < 100
    window.tab.locator(".long-list").focus()
    window.tab.keyboard.press("End")
    window.tab.wait_for_selector(".row[aria-posinset='2200'][aria-selected=true]")
    assert window.tab.locator(".row").count() < 100
    assert window.texts(".figures dd")[0] == "1,100"


@pytest.mark.check
def test_of_many_cells_only_those_in_view_are_in_the_page(window: Window, tmp_path: Path) -> None:
    swept = ", ".join(str(epsilon) for epsilon in range(1, 2102))
    scenario = command.SMALL.replace("trials = 3", "trials = 1") + f'[sweep]\n"compliance.epsilon" = [{swept}]\n'
    calls = (_asked(number, f"deal-{number}") for number in range(1, 2102))
    (tmp_path / "many.html").write_text(page(open_run(record(tmp_path / "run", calls, scenario))))
    window.open(tmp_path / "many.html")
    assert window.texts(".trials .left") == ["2,101 trials"]
    assert window.tab.locator(".cell").count() < 60
    window.tab.evaluate("window.scrollTo(0, document.documentElement.scrollHeight)")
    window.tab.get_by_role("heading", name="epsilon 2,101").wait_for()
    assert window.tab.locator(".cell").count() < 60
    window.tab.get_by_label("search").fill("epsilon 77")
    assert window.tab.locator(".cell").count() == 11


@pytest.mark.check
def test_who_sees_only_its_own_part_is_told_so(window: Window, tmp_path: Path) -> None:
    folder = command.played(tmp_path, _small(tmp_path))
    finished = command.fairwall("view", folder, "--as", "developer", cwd=tmp_path)
    assert finished.returncode == 0, finished.stderr
    window.open(folder / "view-developer.html")
    assert "as the developer saw it" in window.texts("header")[0]
    assert window.tab.get_by_role("link", name="Findings").count() == 0
    window.open(folder / "view-developer.html", "#trial=1&m=1")
    window.tab.keyboard.press("End")
    window.tab.wait_for_selector(".people svg.grid")
    assert "not for these eyes" in window.texts(".people .told")[0]


@pytest.mark.check
def test_the_developers_page_of_a_game_holds_no_byte_of_the_protected_column(tmp_path: Path) -> None:
    """But for its own guess, which with exact answers is that column."""
    settings = ("--trials", "1", "--set", 'compliance.epsilon=["inf", 10]', "--set", "developer.strategy=sensing")
    folder = command.played(tmp_path, "demo", *settings)
    dealt = deals_of(read(folder / "transcript" / "compliance" / "1.bin"), "Compliance")
    (values, *_) = {collect(deal, parts)["protected"].tobytes() for _, deal, parts in dealt}
    search = ByteSearch([SoughtColumn("A", np.frombuffer(values, np.uint8))])

    def found(told: Viewed) -> bool:
        return any(search(data, NARROW if len(data) > 1 << 18 else WIDE) for data in told.everything)

    for party, sent in (("developer", True), ("adversary", False)):
        told = Viewed(page(open_run(folder), sight=Sight(party)))
        assert found(told) is sent
        for row, details in told.messages():
            arrays = (value["places"] for _, _, value in details["fields"] if "places" in value)
            for block, start, size in chain.from_iterable(arrays) if row["from"] == party else ():
                data = told.blocks[block]
                told.blocks[block] = data[:start] + bytes(size) + data[start + size :]
        assert not found(told)


def _small(folder: Path) -> Path:
    (folder / "small.toml").write_text(command.SMALL)
    return folder / "small.toml"


@pytest.mark.check
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_pages_are_fit_for_everybody(browser: Any, demo: Path, made_up: Path, width: int, scheme: str) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: make browser")
    shown = [(demo, ""), (demo, "#trial=1&m=16"), (made_up, "#findings"), (made_up, "#beside")]
    for path, address in shown:
        with _window(browser, width, scheme) as window:
            window.open(path, address)
            if "trial" in address:
                window.tab.wait_for_selector(".array-of summary")
                window.tab.locator(".array-of summary").first.click()
                window.tab.wait_for_selector(".array .strip")
            assert grave_faults(window.tab) == [], (address, width, scheme)
            assert window.tab.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--as", "nobody"), "--as must be compliance, developer, adversary or referee, not 'nobody'"),
        (("--trial", "9"), "there is no trial 9 in its transcripts"),
        (("--beside", "x", "--replayed"), "are different things"),
        (("--beside", "gone"), "gone: not a run's folder: it has no scenario.toml"),
    ],
)
def test_what_cannot_be_shown_is_one_line(
    fairwall: Callable[..., Any], made_up: Path, arguments: tuple[str, ...], says: str
) -> None:
    finished = fairwall("view", str(made_up.parent / "run"), *arguments)
    assert finished.returncode == 2
    assert says in finished.stderr
    assert finished.stderr.count("\n") == 1


@pytest.mark.slow(seconds=20)
def test_a_run_is_shown_beside_what_comes_of_it_again(window: Window, tmp_path: Path) -> None:
    finished = command.fairwall(
        "view", command.played(tmp_path, _small(tmp_path)), "--replayed", "--out", "a.html", cwd=tmp_path
    )
    assert finished.returncode == 0, finished.stderr
    window.open(tmp_path / "a.html", "#beside")
    assert window.texts(".verdict") == ["No message differs."]
    assert set(window.texts(".mark")) == {"="}
