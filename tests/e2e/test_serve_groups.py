"""A deployment that is asked by group: real processes, real certificates, two developers, the documented notebook."""

from __future__ import annotations

import base64
import csv
import json
import re
import shutil
import sys
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tomli_w

from compliance.ledger.entries import LedgerEntry
from compliance.ledger.place import inspect
from tests.e2e.test_ledger_page import documented
from tests.e2e.test_serve import BY_HAND, DOCS, deployment, refusal, serving
from tests.support import forked_programs
from tests.support.command import fairwall

PAGE = (DOCS / "groups.md").read_text()
PEOPLE = 2_000
RACES, SEXES = ("asian", "black", "white", "hidden-value", ""), ("f", "m")
SHARES = (0.08, 0.2, 0.666, 0.004, 0.05)
BY = ("race", "sex")


def applicants(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Write a table of people who do not exist; their races and whether they are chosen."""
    rng = np.random.default_rng(1)
    race, sex = rng.choice(len(RACES), PEOPLE, p=SHARES), rng.integers(0, 2, PEOPLE)
    experience = np.round(rng.gamma(3, 2, PEOPLE) + sex, 1)
    rows = [
        f"{RACES[race[i]]},{SEXES[sex[i]]},{experience[i]},{int(experience[i] + rng.normal() > 7)}"
        for i in range(PEOPLE)
    ]
    (folder / "applicants.csv").write_text("\n".join(["race,sex,experience,hired", *rows]) + "\n")
    (folder / "applicants.csv").chmod(0o600)
    return race * 2 + sex, (experience > 6).astype(float)


def grouping(folder: Path, **data: object) -> Path:
    """The documented example about applicants, with the groups of the page."""
    deployment(folder)
    applicants(folder)
    policy = tomllib.loads((folder / "policy.toml").read_text())
    block, _, _ = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    policy["data"] |= {
        "source": "applicants.csv",
        "protected": "sex",
        "advantaged": "m",
        "disadvantaged": "f",
        "label": "hired",
        **tomllib.loads(block)["data"],
        **data,
    }
    (folder / "policy.toml").write_text(tomli_w.dumps(policy))
    return folder


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return grouping(tmp_path)


def charged(folder: Path) -> list[tuple[str, str, float]]:
    (found,) = inspect(folder / "ledger" / "ledger.sqlite")
    entries = [record for record in found.records if isinstance(record, LedgerEntry)]
    return [(entry.request.developer, entry.request.request_id, entry.request.loss.epsilon) for entry in entries]


@pytest.mark.check
def test_the_documented_notebooks_run(own: Path) -> None:
    *blocks, _ = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    with serving(own) as running:
        for block in blocks:
            command = [sys.executable, "-c", block.replace("127.0.0.1:7443", running.address)]
            first, again = (
                forked_programs.run(command, capture_output=True, text=True, cwd=own, timeout=300, check=False)
                for _ in range(2)
            )
            assert (first.returncode, first.stderr) == (0, "")
            assert first.stdout == again.stdout
            assert "..." not in first.stdout  # B7: pandas leaves out columns of a frame that is printed
    names = ("odds", "deciles", "stages", "means")
    assert charged(own) == [("alice", "groups-1", 1.0), *(("alice", name, 0.5) for name in names)]


@pytest.mark.check
def test_the_documented_attribute_that_nobody_holds_is_told_by_probabilities(own: Path) -> None:
    _, block, _ = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    *_, notebook = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    policy = tomllib.loads((own / "policy.toml").read_text())
    policy["data"] |= tomllib.loads(block)["data"]
    (own / "policy.toml").write_text(tomli_w.dumps(policy))
    rng, table = np.random.default_rng(5), pd.read_csv(own / "applicants.csv")
    likely = np.round(rng.beta(0.5, 1, PEOPLE), 3)
    # Who is hired depends on the group beyond the probabilities.
    hispanic, golden = rng.random(PEOPLE) < likely, rng.random(PEOPLE) < 0.4
    table["experience"] = np.where(hispanic, 0.6, 1.0) * table["experience"]
    table["p_hispanic"], table["p_other"] = likely, (1 - likely).round(3)
    table["ethnicity_told"] = np.where(golden, np.where(hispanic, "hispanic", "other"), "")
    table.to_csv(own / "applicants.csv", index=False)
    chosen = table["experience"] > 6
    with serving(own) as running, running.client() as audits:
        command = [sys.executable, "-c", notebook.replace("127.0.0.1:7443", running.address)]
        done = forked_programs.run(command, capture_output=True, text=True, cwd=own, timeout=300, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(str({"ethnicity": int(golden.sum())}))
        frame = audits.by_group(chosen, by="ethnicity", epsilon=1.0, request_id="likely-1")
        for group, who in (("hispanic", hispanic), ("other", ~hispanic)):
            told = frame.loc[group]
            low, high = told["selection_rate_low"], told["selection_rate_high"]
            margin = high - low  # noise is the system's, and other each time: 5% lie outside, and next to none so far
            assert low - margin <= chosen[who].mean() <= high + margin
            assert told["selection_rate_proxy_p_value"] < 0.05
        both = audits.by_group(chosen, by=("ethnicity", "sex"), epsilon=0.5)
        assert len(both) == 4
        by_sex = audits.by_group(chosen, by="sex", epsilon=0.5)
        assert "selection_rate_proxy" not in by_sex
        with pytest.raises(ValueError, match="ethnicity is known by probabilities"):
            audits.count_by_group(chosen, by="ethnicity", epsilon=0.5).practice()
        with pytest.raises(ValueError, match="mean_score is not told by ethnicity"):
            audits.by_group(likely, by="ethnicity", epsilon=0.5)
        report, *_ = documented("A signed page")
        shutil.copyfile(own / "log", own / "service.log")
        done = fairwall(*report, cwd=own)
        assert (done.returncode, done.stderr) == (0, "")
    page = (own / "loans.html").read_text()
    assert f"ethnicity is known by probabilities; it is known for sure of {golden.sum():,} people" in page
    assert "Probabilities alone would give wrong rates" in page


@pytest.mark.check
def test_what_practice_asks_is_told_by_ordinary_requests_that_cost_their_epsilon(own: Path) -> None:
    policy = tomllib.loads((own / "policy.toml").read_text())
    policy["audit"]["metrics"] = ["sp", "eo", "fpr"]
    (own / "policy.toml").write_text(tomli_w.dumps(policy))
    table = pd.read_csv(own / "applicants.csv")
    years, men = table["experience"], table["sex"] == "m"
    chosen, stages = years > 6, np.where(years > 8, "senior", "junior")
    with serving(own) as running, running.client() as audits:
        four = [f"{name}_rate" for name in ("selection", "true_positive", "false_positive")]
        counts = audits.count_by_group(chosen, "sex", 0.5, measures=four)
        f, m = counts.practice(reference="m")
        odds = {value: (who & chosen).sum() / (who & ~chosen).sum() for value, who in (("f", ~men), ("m", men))}
        assert f["selection_rate_odds_ratio"] == pytest.approx(odds["f"] / odds["m"], rel=0.2)
        assert m["selection_rate_odds_ratio"] == 1
        rates = [chosen[men & (table["hired"] == label)].mean() for label in (1, 0)]
        assert m["balanced_accuracy"] == pytest.approx((rates[0] + 1 - rates[1]) / 2, abs=0.03)
        bands = audits.by_quantile(years, "sex", 0.5, quantiles=10, labels=True)
        assert bands.counts.models == 9
        for record in bands.records():
            who = men == (record["sex"] == "m")
            assert record["selection_rate"] == pytest.approx((years[who] >= record["threshold"]).mean(), abs=0.1)
        for record in bands.calibration()[-2:]:
            who = (men == (record["sex"] == "m")) & (years >= record["from"])
            assert record["positives"] == pytest.approx(table["hired"][who].mean(), abs=0.25)
        found = audits.by_segment(chosen, stages, "sex", 0.5)
        assert {record["selection_rate"] for record in found.records() if record["segment"] == "senior"} == {1.0}
        assert found.common_odds_ratio(reference="m")[1]["common_odds_ratio"] == pytest.approx(1)
        with pytest.raises(ValueError, match="not one for each"):
            audits.by_segment(chosen, stages[1:], "sex", 0.5)
        assert refusal(lambda: audits.by_quantile(years, "sex", 0.5, quantiles=40))[0] == "QUERIES_OUT_OF_RANGE"
        with running.client("bob") as bob:
            f, m = bob.standardised_difference(years, "sex", 0.5, bounds=(0, 20), reference="m")
        apart = (years[~men].mean() - years[men].mean()) / years.clip(0, 20).std(ddof=0)
        assert f["standardised_difference"] == pytest.approx(apart, abs=0.05)
        assert (m["standardised_difference"], f["mean"]) == (0, pytest.approx(years[~men].mean(), abs=0.2))
    assert [(who, cost) for who, _, cost in charged(own)] == [*[("alice", 0.5)] * 3, ("bob", 0.5)]


def test_two_developers_get_rates_whose_intervals_hold_the_exact_ones(own: Path) -> None:
    cell, chosen = applicants(own)
    sizes = np.bincount(cell, minlength=10)
    exact = np.bincount(cell, chosen, 10) / sizes
    with serving(own) as running, running.client() as alice, running.client("bob") as bob:
        frames = {who.group_terms().epsilon: who.by_group(chosen, BY, 2.0) for who in (alice, bob)}
        assert sorted(frames) == [2.0, 3.0]
        for frame in frames.values():
            assert frame.index.names == list(BY)
            assert len(frame) == 10
            # Of ten intervals of 95%, seven miss in one run of ten million.
            held = (frame.selection_rate_low <= exact) & (exact <= frame.selection_rate_high)
            assert held.sum() >= 4
            assert ((frame.people_low <= sizes) & (sizes <= frame.people_high)).sum() >= 4
            assert not frame.compared.loc["unknown"].any()
            assert not frame.compared.loc[("other", "f")]  # 1% of the people
            assert frame.compared.loc[("white", "m")]
            assert frame.selection_rate_ratio.max() == 1
        first, second = frames.values()
        assert not first.equals(second), "another draw"
        assert alice.group_terms().epsilon_remaining == 0.0, "the whole data set's budget is spent"
    assert [(who, cost) for who, _, cost in charged(own)] == [("alice", 2.0), ("bob", 2.0)]


@pytest.mark.check
def test_a_repeat_is_free_and_the_same_and_margins_cost_nothing(own: Path) -> None:
    _, chosen = applicants(own)
    scores = np.linspace(0, 1, PEOPLE)
    with serving(own) as running, running.client() as audits:
        first = audits.count_by_group(
            chosen, BY, 0.5, measures=("selection_rate", "true_positive_rate"), request_id="a"
        )
        again = audits.count_by_group(
            chosen, BY, 0.5, measures=("selection_rate", "true_positive_rate"), request_id="a"
        )
        assert first.release == again.release
        by_sex = first.frame(over=("sex",))
        assert by_sex.index.tolist() == ["f", "m"]
        assert by_sex.people.sum() == PEOPLE
        assert len(first.records(over=("race",))) == 5
        both = audits.by_group([scores, scores**2], "race", 0.5)
        assert both.index.names == ["model", "race"]
        assert {"mean_score", "scoring_rate", "scoring_rate_p_value"} <= set(both.columns)
        assert audits.terms().epsilon_remaining == audits.group_terms().epsilon_remaining == 2.0
        assert audits.ask(chosen, "sp", 1.0).epsilon_remaining == 1.0
        assert (
            audits.count_by_group(chosen, BY, 0.5, measures=first.measures, request_id="a").epsilon_remaining_now == 1.0
        )
    assert len(charged(own)) == 3


@pytest.mark.check
def test_what_is_refused_is_not_charged(own: Path) -> None:
    _, chosen = applicants(own)
    scores = np.linspace(0, 1, PEOPLE)
    with serving(own) as running, running.client() as audits:
        audits.count_by_group(chosen, "sex", 0.5, request_id="used")

        def reason(*asked: object, **how: object) -> str:
            return refusal(lambda: audits.count_by_group(*asked, **how))[0]  # type: ignore[arg-type]

        assert reason(chosen, "race", 0.5, request_id="used") == "REQUEST_ID_REUSED"
        assert refusal(lambda: audits.ask(chosen, "sp", 0.5, request_id="used"))[0] == "REQUEST_ID_REUSED"
        assert reason(chosen, "sex", 0.5, measures=("false_positive_rate",)) == "METRIC_NOT_ALLOWED"
        assert reason(scores, "sex", 0.5, measures=("selection_rate",)) == "PREDICTIONS_NOT_BINARY"
        assert reason(chosen[:-1], "sex", 0.5) == "PREDICTIONS_SHAPE"
        assert reason(np.tile(chosen, (21, 1)), "sex", 0.5) == "QUERIES_OUT_OF_RANGE"
        assert reason(chosen, "sex", 1e-5) == "EPSILON_INVALID"
        assert reason(chosen, "sex", 2.5) == "EPSILON_INVALID"
        assert reason(chosen, "sex", 0.5, measures=("selection_rate", "selection_rate")) == "REQUEST_MALFORMED"
        assert reason(chosen, "sex", 0.5, request_id="") == "REQUEST_ID_INVALID"
        for by in ("income", (), ("sex", "sex")):
            with pytest.raises(ValueError, match="by must be one or several of race, sex"):
                audits.count_by_group(chosen, by, 0.5)
        with pytest.raises(ValueError, match="must be among selection_rate"):
            audits.count_by_group(chosen, "sex", 0.5, measures=("precision",))
        with running.client("carol") as carol:
            assert refusal(lambda: carol.group_terms())[0] == "CALLER_NOT_ALLOWED"
    assert charged(own) == [("alice", "used", 0.5)]
    for value in ("hidden-value", "asian"):
        assert value not in running.log


@pytest.mark.check
def test_the_signed_page_carries_what_the_developer_was_told_by_group(own: Path) -> None:
    """The four-fifths table: by race, by sex, by both, bit for bit, for an auditor who has the files alone."""
    group, chosen = applicants(own)
    less = np.where((group // 2 == 1) & (np.arange(PEOPLE) % 2 == 0), 0.0, chosen)  # half of one race's
    people = (own / "applicants.csv").read_bytes()
    report, check, *_ = documented("A signed page")
    with serving(own) as running, running.client() as audits:
        first = audits.count_by_group(
            less, BY, 1.2, request_id="=counts", measures=["selection_rate", "true_positive_rate"]
        )
        second = audits.count_by_group(np.stack([chosen, less]), ("sex",), 0.5, request_id="two")
        audits.ask(chosen, "sp", 0.25, request_id="gap.rates.csv")
        shutil.copyfile(own / "log", own / "service.log")
        for words in (report, ["deploy", "ledger", "show", "ledger/ledger.sqlite"]):
            done = fairwall(*words, cwd=own)
            assert (done.returncode, done.stderr) == (0, "")
    assert "by-group" in done.stdout
    told = json.loads(base64.b64decode(json.loads((own / "loans.intoto.json").read_text())["payload"]))
    assert [one["name"] for one in told["subject"]] == [
        *("loans.html", "loans.rates.csv", "alice/gap.rates.csv", "alice/=counts", "alice/two")
    ]
    stated = told["predicate"]["byGroup"]
    assert [one["epsilon"] for one in stated] == [1.2, 0.5]
    rows = list(csv.DictReader((own / "loans.rates.csv").read_text().splitlines()))
    assert {row["request"] for row in rows} == {"'=counts", "two"}, "no formula in a spreadsheet"
    for answer, one, request in ((first, stated[0], "'=counts"), (second, stated[1], "two")):
        for over in [(name,) for name in answer.by] + ([answer.by] if len(answer.by) > 1 else []):
            for measure in answer.measures:
                of = [row for row in one["rates"] if (row["over"], row["measure"]) == ([*over], measure)]
                also = [
                    row
                    for row in rows
                    if (row["request"], row["by"], row["measure"]) == (request, " and ".join(over), measure)
                ]
                for record, row, line in zip(answer.records(over), of, also, strict=True):
                    assert (record["model"] + 1, [record[name] for name in over]) == (row["model"], row["group"])
                    assert (str(row["model"]), ", ".join(row["group"])) == (line["model"], line["group"])
                    for theirs, ours in (("", "rate"), ("_ratio_low", "ratio_low"), ("_high", "rate_high")):
                        exact = record[f"{measure}{theirs}"]
                        assert row[ours] == (None if np.isnan(exact) else exact)
                        assert line[ours] == ("" if np.isnan(exact) else repr(exact))
    page = (own / "loans.html").read_text()
    for heading in ("Selection rate by race: alice/=counts", "Selection rate by race and sex: alice/=counts"):
        assert heading in page
    (worst,) = [row for row in stated[0]["worst"] if (row["over"], row["measure"]) == (["race"], "selection_rate")]
    assert (worst["least"], worst["below_four_fifths"] > 0.9) == (["black"], True)
    assert "selection rate by race: black has" in page
    assert "Not compared: other; unknown." in page
    assert (own / "applicants.csv").read_bytes() == people

    assert fairwall(*check, cwd=own).returncode == 2  # no authority.pem here
    shutil.copyfile(own / "certificates/developer-alice/authority.pem", own / "authority.pem")
    assert fairwall(*check, cwd=own).returncode == 0
    table = (own / "loans.rates.csv").read_bytes()
    (own / "loans.rates.csv").write_bytes(table.replace(b"black", b"white", 1))
    changed = fairwall(*check, cwd=own)
    assert changed.returncode == 1
    assert "loans.rates.csv is not the one that was signed with this statement" in changed.stdout
    (own / "loans.rates.csv").unlink()
    missing = fairwall(*check, cwd=own)
    assert missing.returncode == 0
    assert "is not here" in missing.stdout


@pytest.mark.check
def test_a_data_set_without_groups_has_none(tmp_path: Path) -> None:
    with serving(deployment(tmp_path)) as running, running.client() as audits:
        assert refusal(audits.group_terms)[0] == "DEAL_UNKNOWN"


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("groups", "line"),
    [
        ({"race": ["asian", "black", "white", "other"]}, "data.groups.race: some rows have a value that is not listed"),
        ({"race": ["asian", "black", "unknown"]}, "data.groups.race: some rows have a value that is not listed"),
        ({"race": ["asian"]}, "data.groups.race: must be 2 to 256 different values, not ['asian']"),
        ({"height": ["tall", "other"]}, "height"),
        (
            {"race": [str(i) for i in range(200)], "sex": ["f", "m"]},
            "data.groups: their values make more than 256",
        ),
    ],
)
def test_groups_that_cannot_be_served_are_one_line(tmp_path: Path, groups: dict[str, list[str]], line: str) -> None:
    folder = grouping(tmp_path, groups=groups)
    command = [sys.executable, *BY_HAND, str(folder / "policy.toml")]
    ended = forked_programs.run(command, capture_output=True, text=True, cwd=folder, timeout=300, check=False)
    assert ended.returncode == 2
    *_, said = ended.stderr.splitlines()
    assert line in said
    assert "hidden-value" not in said
