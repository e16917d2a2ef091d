"""A search for less discriminatory models, as a developer and an auditor see it: the program, and the signed page."""

from __future__ import annotations

import base64
import json
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairwall.client import AuditClient
from tests.e2e.test_serve import DOCS, change, deployment, refusal, serving
from tests.e2e.test_tools import with_ids
from tests.support import forked_programs
from tests.support.command import fairwall

(PROGRAM,) = re.findall(r"```python\n(.*?)```", (DOCS / "alternatives.md").read_text(), re.DOTALL)


def models(folder: Path, count: int = 12) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """Decisions by thresholds of a score, in the order of the file, and how often each is right."""
    rows = pd.read_csv(folder / "loans.csv")
    rng = np.random.default_rng(0)
    decisions = {
        f"m{i} <b>{'é' * (i == 3)}": (
            rows["income"] - rows["debt"] + rng.normal(0, 4, len(rows)) > rng.normal(20, 6)
        ).to_numpy()
        for i in range(count)
    }
    return decisions, {name: float((each == rows["repaid"]).mean()) for name, each in decisions.items()}


@pytest.mark.check
def test_the_documented_search_runs_and_its_repeat_is_free(tmp_path: Path) -> None:
    with_ids(tmp_path)
    change(tmp_path, mechanism="recommended")
    with serving(tmp_path) as running:
        told = [
            forked_programs.run(
                [sys.executable, "-W", "error", "-c", PROGRAM.replace("127.0.0.1:7443", running.address)],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
            for _ in range(2)
        ]
        for each in told:
            assert each.stderr == ""
            assert "..." not in each.stdout  # B7: no column of the frame is left out
        assert told[0].stdout == told[1].stdout
        assert re.match(r"Of 20 candidates \d+ have a utility of 0.6 and more\. ", told[0].stdout)
        assert (tmp_path / "search.png").stat().st_size > 5000
        with running.client() as audits:
            assert audits.terms().epsilon_remaining == 2.0


@pytest.mark.check
def test_a_search_is_on_the_signed_page(tmp_path: Path) -> None:
    deployment(tmp_path)
    change(tmp_path, mechanism="recommended")
    decisions, useful = models(tmp_path)
    baseline = max(useful, key=lambda name: useful[name])
    least = sorted(useful.values())[4]
    with serving(tmp_path) as running, running.client() as audits:
        found = audits.search(
            decisions, "sp", 1.0, utility=useful, baseline=baseline, at_least=least, request_id="lda-1"
        )
        assert 0.5 < found.answer.epsilon_charged < 1.0, "more would be answered worse within the limit"
        assert audits.ask(decisions, "sp", 0.1).draws is None
        frame = found.frame()
        assert list(frame.index) == list(decisions)
        assert frame.attrs["baseline"] == baseline
        assert (frame["low"] <= frame["high"]).all()
        assert set(frame.index[frame["alike"]]) == {found.least(), *found.alike()}
        few = audits.search(
            {name: decisions[name] for name in list(decisions)[:2]},
            "sp",
            0.5,
            utility=[0.5, 0.6],
            baseline=0,
        )
        assert few.records()[0]["better"] == 0.5
        assert len(few.answer.gaps) == 2
    done = fairwall("deploy", "ledger", "report", "--policy", "policy.toml", "--out", "page.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.html").read_text()
    assert "2 questions searched for a less discriminatory model." in page
    assert "Searches for less discriminatory models" in page
    assert "m1 &lt;b&gt;" in page
    assert "m1 <b>" not in page
    (statement,) = tmp_path.glob("page*.intoto.json")
    envelope = json.loads(statement.read_text())
    predicate = json.loads(base64.b64decode(envelope["payload"]))["predicate"]
    searched = predicate["audits"][0]["search"]
    assert searched["baseline"] == baseline
    assert [one["model"] for one in searched["candidates"]] == list(decisions)
    assert [one["utility"] for one in searched["candidates"]] == pytest.approx(list(useful.values()))
    assert predicate["audits"][1]["search"] is None


def test_what_cannot_be_searched_is_refused_and_costs_nothing(tmp_path: Path) -> None:
    deployment(tmp_path)
    decisions, useful = models(tmp_path, 3)
    first = next(iter(decisions))
    with serving(tmp_path) as running, running.client() as audits:
        before = audits.terms().epsilon_remaining
        wrong = [
            ({"utility": [1.0, 2.0], "baseline": 0}, "one finite number for each of 3"),
            ({"utility": [1.0, 2.0, np.nan], "baseline": 0}, "one finite number for each of 3"),
            ({"utility": {"a": 1.0}, "baseline": 0}, "'a' is in one of them alone|must have every candidate"),
            ({"utility": useful, "baseline": "nobody"}, "baseline 'nobody': must be a candidate's name"),
            ({"utility": useful, "baseline": 3}, "baseline 3"),
            ({"utility": useful, "baseline": first, "at_least": 2.0}, "no candidate has a utility of 2: the most is"),
        ]
        for asked, why in wrong:
            with pytest.raises(ValueError, match=why):
                audits.search(decisions, "sp", 0.5, **asked)
        long = dict(zip(("x" * 101, "b", "c"), decisions.values(), strict=True))
        with pytest.raises(ValueError, match="a name has 1 to 100 printable characters"):
            audits.search(long, "sp", 0.5, utility=[1, 2, 3], baseline=0)
        assert refusal(lambda: audits.search(decisions, "sp", 9.0, utility=useful, baseline=0))[0] == "EPSILON_INVALID"
        assert audits.terms().epsilon_remaining == before
        assert isinstance(audits, AuditClient)
