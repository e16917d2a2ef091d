"""A law's pack, of a service that runs: with the tables that it asks for, and with one that is missing."""

from __future__ import annotations

import base64
import json
import re
import shlex
import signal
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w

from tests.e2e.test_serve import DOCS, serving
from tests.e2e.test_serve_groups import applicants, grouping
from tests.support.browser import CHROMIUM
from tests.support.command import fairwall

PAGE = (DOCS / "law.md").read_text()
SECTION, OWN = (tomllib.loads(block) for block in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL))
(LINE,) = re.findall(r"```sh\nfairwall (.*?)\n```", PAGE)


def with_law(folder: Path, section: dict[str, object], race: str = "race") -> tuple[Path, np.ndarray]:
    """The applicants' deployment under a law, whose column of races may have another name; and who is chosen."""
    policy = tomllib.loads((grouping(folder) / "policy.toml").read_text())
    _, chosen = applicants(folder)
    people = (folder / "applicants.csv").read_text()
    (folder / "applicants.csv").write_text(people.replace("race,", f"{race},", 1))
    policy["data"]["groups"] = {race: policy["data"]["groups"]["race"], "sex": policy["data"]["groups"]["sex"]}
    (folder / "policy.toml").write_text(tomli_w.dumps(policy | {"law": section}))
    return folder, chosen


def reported(folder: Path) -> tuple[str, dict[str, Any]]:
    """What the page says, and what was signed with it."""
    done = fairwall(*shlex.split(LINE), cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    authority = ("--authority", "certificates/developer-alice/authority.pem")
    assert fairwall("deploy", "ledger", "check", "loans.html", *authority, cwd=folder).returncode == 0
    told = json.loads(base64.b64decode(json.loads((folder / "loans.intoto.json").read_text())["payload"]))
    return (folder / "loans.html").read_text(), told["predicate"]


@pytest.mark.check
def test_the_pack_of_new_york_s_law_grows_with_what_is_asked(tmp_path: Path) -> None:
    own, chosen = with_law(tmp_path, SECTION["law"], race="ethnicity")
    with serving(own) as running, running.client() as audits:
        audits.count_by_group(chosen, ("sex",), 0.5, request_id="by-sex")
        page, account = reported(own)
        assert "Tables that the rule asks for: 3; here: 1." in page
        assert "by=(&#39;ethnicity&#39;, &#39;sex&#39;), epsilon=...)" in page
        audits.by_group(chosen, ("ethnicity", "sex"), 1.0, request_id="all")
        page, account = reported(own)
    assert "Tables that the rule asks for: 3; here: 3." in page
    assert "Not here:" not in page
    ids = re.findall(r'<(?:h2|section)[^>]* id="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    assert {*re.findall(r'<a href="#([^"]*)"', page)} <= {*ids}
    assert page.index("In short") < page.index("New York City: bias audits") < page.index("Selection rate by")
    (stated,) = account["law"]
    assert (stated["preset"], stated["checked"], stated["columns"]) == (
        "nyc-ll144",
        "2026-11-27",
        SECTION["law"]["columns"],
    )
    worst = {tuple(row["over"]): row for one in account["byGroup"] for row in one["worst"]}
    assert f"{worst['ethnicity', 'sex']['ratio']:.3g} [" in page
    # Whose ethnicity is unknown, and how many.
    assert re.search(
        r">unknown</td>(?s:.*?)>by ethnicity</td>(?s:.*?)>unknown</td>(?s:.*?)>\d+ \[\d+ to \d+\]</td>", page
    )


@pytest.mark.check
def test_a_preset_of_ones_own_is_read_again_by_a_confined_service(tmp_path: Path) -> None:
    """And one that is spoilt leaves in force what was in force."""
    own, chosen = with_law(tmp_path, {"preset": "laws/ours.toml"})
    (own / "laws").mkdir()
    ours = own / "laws" / "ours.toml"
    ours.write_text(tomli_w.dumps(OWN | {"small": 0.02}))

    def told_again(says: str) -> None:
        running.process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + 60
        while says not in running.log:
            assert time.monotonic() < deadline
            time.sleep(0.05)

    with serving(own) as running, running.client() as audits:
        audits.by_group(chosen, "sex", 1.0, request_id="one")
        page, _ = reported(own)
        assert "Our lending rule" in page
        told_again("SIGHUP: loans: metrics")
        ours.write_text("title = 1")
        told_again("law.preset: ours.toml: title: Input should be a valid string")
        assert audits.group_terms().epsilon_remaining == 2.0
    done = fairwall(*shlex.split(LINE), cwd=own)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert "law.preset: ours.toml: title: Input should be a valid string" in done.stderr


@pytest.mark.check
@pytest.mark.parametrize("preset", ["nyc-ll144", "eeoc-four-fifths", "nj-disparate-impact", "eu-ai-act-10-5"])
def test_the_pack_is_no_wider_than_a_phone(tmp_path: Path, preset: str) -> None:
    if CHROMIUM is None:
        pytest.skip("no browser is installed: chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed", exc_type=ImportError)
    own, chosen = with_law(tmp_path, {"preset": preset})
    with serving(own) as running, running.client() as audits:
        audits.count_by_group(chosen, ("race", "sex"), 1.0, request_id="all")
        reported(own)
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 390, "height": 900})
        tab.goto(f"file://{own / 'loans.html'}")
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390
        browser.close()
