"""The release game through real processes: every protocol and control, twins that cheat, and what cannot be played."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairwall.laws.local import LOCAL_LAWS
from sim.games.table import TrialFailed
from sim.verify.check import verify
from tests.e2e.test_resume import patched, timeless
from tests.e2e.test_verify_reports import Twins, played, reported, reporting, submitting, twins
from tests.support.command import fairwall

__all__ = ["twins"]

NEEDS_LIGHTGBM = pytest.mark.skipif(importlib.util.find_spec("lightgbm") is None, reason="needs the extra for releases")

PEOPLE = 300
OF_ANY_DOMAIN = [name for name, law in LOCAL_LAWS.items() if law.domain is None]
ONE = """
[scenario]
name = "small"
game = "release"
trials = 1
seed = 3
[data]
source = "people.csv"
protected = "group"
advantaged = "a"
label = "y"
positive = "1"
sensitive = ["group", "age"]
[compliance]
mechanism = "exact"
[developer]
trees = 5
[release]
"""
GRR = f'{ONE}protocol = "grr"\nepsilon = 4.0\n'
ALL = f"""{ONE}protocol = "clean"
[[sweep]]
"release.protocol" = {json.dumps(OF_ANY_DOMAIN)}
"release.epsilon" = [4.0]
[[sweep]]
"release.protocol" = ["clean", "dropped", "constant"]
"release.epsilon" = ["inf"]
"""


MIXED = f"""{GRR}queries = 10
[[sweep]]
"release.queries_share" = [0.25, 1.0]
"compliance.mechanism" = ["counts", "laplace"]
"compliance.epsilon" = [3.0]
"""
MIX = ("release.queries=10", "release.queries_share=0.25", "compliance.mechanism='counts'", "compliance.epsilon=3.0")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write people down: ``age`` has 4 values, ``one`` has 1, ``many`` has 300."""
    rng = np.random.default_rng(1)
    path = tmp_path_factory.mktemp("table") / "people.csv"
    group, age, job = (
        rng.choice(["a", "b"], PEOPLE, p=[0.6, 0.4]),
        rng.integers(0, 4, PEOPLE),
        rng.integers(0, 3, PEOPLE),
    )
    well = (rng.random(PEOPLE) < 0.2 + 0.3 * (group == "a") + 0.1 * age).astype(int)
    rows = zip(group, age, job, ["x"] * PEOPLE, range(PEOPLE), well, strict=True)
    path.write_text("group,age,job,one,many,y\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    return path


def of(table: Path, scenario: str, *, drop: str = '["one", "many"]') -> str:
    return scenario.replace('"people.csv"', f'"{table}"\ndrop = {drop}')


@pytest.fixture(scope="module")
def whole(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Play every protocol and control once."""
    if importlib.util.find_spec("lightgbm") is None:
        pytest.skip("needs the extra for releases")
    return played(tmp_path_factory.mktemp("whole"), of(table, ALL))


def lines_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "trials.jsonl").read_text().splitlines()]


@pytest.mark.check
def test_every_protocol_and_control_is_played(whole: Path) -> None:
    lines = {line["protocol"]: line for line in lines_of(whole)}
    assert list(lines) == [*OF_ANY_DOMAIN, "clean", "dropped", "constant"]
    for protocol in OF_ANY_DOMAIN:
        line = lines[protocol]
        assert (line["release_spent"], line["epsilon_protected"], line["queries"]) == (4.0, 2.0, 4)
        assert 0 < line["loss"] <= 4 + 1e-9
        assert line["leakage"] < 100
        assert {"sp", "di", "eo", "oad", "acc", "f1", "recall", "auc", "auc_hard"} <= line.keys()
        for gap in ("sp", "eo", "oad"):
            assert line[gap] == line[f"{gap}_advantaged"] - line[f"{gap}_disadvantaged"]
        assert line["di"] == line["sp_disadvantaged"] / line["sp_advantaged"]
    clean, dropped, constant = (lines[name] for name in ("clean", "dropped", "constant"))
    assert (clean["leakage"], clean["leakage_release"], clean["consistent"]) == (100.0, 100.0, 1.0)
    # Nothing is released there, so there is nothing to guess from.
    for line in (dropped, constant):
        assert (line["leakage_release"], line["leakage"], line["release_spent"]) == (None, None, 0.0)
    assert constant["sp"] == constant["eo"] == 0
    assert clean["release_spent"] == "inf"


@pytest.mark.slow
@NEEDS_LIGHTGBM
def test_the_fairest_release_of_the_protected_column_alone(table: Path, tmp_path: Path) -> None:
    fairest = ("data.sensitive=['group']", "release.protocol='fair-0'")
    folder = played(tmp_path, of(table, GRR), *fairest)
    (line,) = lines_of(folder)
    assert (line["epsilon_protected"], line["release_spent"], line["loss"]) == (4.0, 4.0, 4.0)
    assert line["consistent"] == 1
    assert verify(folder).findings == ()


def test_a_run_verifies(whole: Path) -> None:
    found = verify(whole)
    assert found.findings == ()
    assert found.reports == 3 * 11
    assert not [note for note in found.notes if "exact gaps" in note]


@pytest.mark.check
def test_a_run_replays_bit_for_bit(whole: Path) -> None:
    done = fairwall("replay", whole)
    assert done.returncode == 0, done.stderr
    assert "11 trials" in done.stdout
    assert "the same bit for bit" in done.stdout


@pytest.mark.slow
def test_a_run_that_was_broken_off_is_resumed(whole: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(whole, tmp_path / whole.name))
    (folder / "trials.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines_of(whole)[:4]))
    result = json.loads((folder / "result.json").read_text())
    (folder / "result.json").write_text(json.dumps(result | {"complete": False, "summary": []}))
    (folder / "report.html").unlink()
    done = fairwall("run", whole.parents[1] / "scenario.toml", "--resume", folder)
    assert done.returncode == 0, done.stderr
    assert timeless(lines_of(folder)) == timeless(lines_of(whole))
    assert (folder / "report.html").exists()


def test_the_page_says_who_is_trusted(whole: Path) -> None:
    page = (whole / "report.html").read_text()
    assert "Who is trusted" in page
    assert "compliance and what it runs on are trusted with the attributes" in " ".join(page.split())


@pytest.mark.check
@NEEDS_LIGHTGBM
def test_noisy_answers_leave_out_what_noise_cannot_hide(table: Path, tmp_path: Path, twins: Twins) -> None:
    # A developer that is told any utility ends the run.
    twins({"developer": TOLD_NOTHING})
    noisy = ("compliance.mechanism='laplace'", "compliance.epsilon=3.0")
    folder = played(tmp_path, of(table, GRR), *noisy)
    (line,) = lines_of(folder)
    assert "di" not in line
    assert "di_released" not in line
    assert line["queries"] == 3
    assert line["sp"] != line["sp_released"]
    assert line["audit_epsilon_spent"] == pytest.approx(3)
    assert verify(folder).findings == ()


@pytest.mark.check
@NEEDS_LIGHTGBM
def test_one_budget_pays_for_a_release_and_queries(table: Path, tmp_path: Path) -> None:
    folder = played(tmp_path, of(table, MIXED))
    lines = lines_of(folder)
    assert [line["epsilon_queried"] for line in lines] == [1.0, 1.0, 4.0, 4.0]
    for line in lines:
        assert (line["epsilon"], line["release_spent"], line["queries"]) == (4.0, 4.0, 3 + 10)
        assert line["epsilon_protected"] == line["epsilon_queried"] + (4.0 - line["epsilon_queried"]) / 2
        assert 0 < line["leakage_mixture"] < 100
        # Where all is for queries nothing is released.
        assert (line["leakage"] is None) == (line["epsilon_queried"] == 4.0)
    assert verify(folder).findings == ()
    done = fairwall("replay", folder)
    assert done.returncode == 0, done.stderr
    assert "the same bit for bit" in done.stdout


@pytest.mark.check
@NEEDS_LIGHTGBM
def test_a_search_asks_fewer_queries_where_these_tell_more(table: Path, tmp_path: Path) -> None:
    asked = ("release.queries=100", "release.queries_share=1.0", "compliance.mechanism='counts'")
    folder = played(tmp_path, of(table, GRR), *asked, "compliance.epsilon=3.0", "release.asked='searched'")
    (line,) = lines_of(folder)
    assert 3 < line["queries"] < 3 + 100
    assert line["release_spent"] == 4.0
    assert verify(folder).findings == ()
    done = fairwall("replay", folder)
    assert done.returncode == 0, done.stderr
    assert "the same bit for bit" in done.stdout


TOLD_NOTHING = """
from developer.release import play as player
connect = player.ReleaseServiceStub
def looking(channel):
    stub = connect(channel)
    honest = stub.HandModel
    def hand(parts, **options):
        response = honest(parts, **options)
        assert not response.utilities
        return response
    stub.HandModel = hand
    return stub
player.ReleaseServiceStub = looking
"""


@pytest.mark.slow
@NEEDS_LIGHTGBM
def test_the_control_for_k_based_costs_the_protected_column_the_same(table: Path, tmp_path: Path) -> None:
    folder = played(tmp_path, of(table, GRR), "release.split=['k-based', 'uniform-at-k-based']")
    k_based, control = lines_of(folder)
    # group has 2 values and age 4: k-based leaves group a third of 4, and as much to both is 8/3.
    assert control["epsilon_protected"] == k_based["epsilon_protected"] == pytest.approx(4 / 3)
    assert (k_based["epsilon"], control["epsilon"]) == (4.0, pytest.approx(8 / 3))
    for line in (k_based, control):
        assert line["loss"] == pytest.approx(line["epsilon"])
        assert line["release_spent"] == line["epsilon"]
    assert verify(folder).findings == ()


@NEEDS_LIGHTGBM
@pytest.mark.slow
@pytest.mark.parametrize("mode", ["seed", "random"])
def test_a_trial_draws_the_same_columns_in_every_cell(table: Path, tmp_path: Path, mode: str) -> None:
    drawn = ("data.sensitive=[]", "data.sensitive_drawn=[2, 3]", "data.candidates=['age', 'job']")
    cells = ("release.protocol=['grr', 'oue']", "release.split=['uniform', 'k-based']", "scenario.trials=4")
    folder = played(tmp_path, of(table, GRR), *drawn, *cells, f"scenario.secret={mode}")
    lines = lines_of(folder)
    sets = [[line["sensitive"] for line in lines[start : start + 4]] for start in range(0, 16, 4)]
    assert sets == [sets[0]] * 4
    assert all(columns == [name for name in ("group", "age", "job") if name in columns] for columns in sets[0])
    if mode == "seed":
        assert len({len(columns) for columns in sets[0]}) == 2
    assert verify(folder).findings == ()


# Twins.

ASKS_TWICE = """
from developer.release import play as player
honest = player._take
def take(compliance, deal):
    honest(compliance, deal)
    return honest(compliance, deal)
player._take = take
"""
DRAWS_AGAIN = """
from compliance.answers.releases import AttributeRelease
draws = []
def again(release, entry):
    draws.append(entry)
    name = entry.request.request_id + (" again" if len(draws) > 1 else "")
    return release.sanitised(name, entry.request.loss.epsilon)
AttributeRelease.encoded = again
"""
SPENDS_OTHERWISE = """
from compliance.answers.releases import AttributeRelease
AttributeRelease.spent = property(lambda release: 3.0)
"""
BETTER = """
from compliance.answers.releases import HandedModel
honest = HandedModel.hand
def hand(model, nodes, *, sees_attributes):
    honest(model, nodes, sees_attributes=sees_attributes)
    model.utilities = (0.99, *model.utilities[1:])
HandedModel.hand = hand
"""
OTHER_RATES = """
from compliance.answers.releases import HandedModel
honest = HandedModel.group_rates
HandedModel.group_rates = lambda model, records: (0.99, *honest(model, records)[1:])
"""
FLIPPED = """
        values = from_message(request.{name}).copy()
        values[0] ^= 1
        request.{name}.CopyFrom(to_message(values))"""


def believing(name: str) -> Mapping[str, str]:
    return {
        "developer": submitting(
            "SubmitBeliefs", FLIPPED.format(name=name), "developer.release.play", "ReleaseGameService"
        )
    }


TWINS: dict[str, tuple[Mapping[str, str], str]] = {
    "draws again on a repeat": (
        {"compliance": DRAWS_AGAIN, "developer": ASKS_TWICE},
        "compliance releases release-1 a second time, and otherwise",
    ),
    "spends otherwise": ({"compliance": SPENDS_OTHERWISE}, "compliance reports: release_spent is 3.0, recomputed 4.0"),
    "reports another utility": ({"compliance": BETTER}, "compliance reports: utilities is [0.99, "),
    "reports another rate of a group": (
        {"compliance": OTHER_RATES},
        "compliance reports: group_rates is [0.99, ",
    ),
    "reports another gap": (
        {"compliance": reporting("audits[0].exact.CopyFrom(to_message(np.array([0.0])))")},
        "compliance reports of metric-1: exact[0] is 0.0",
    ),
    "guesses otherwise from the release": (believing("from_release"), "developer reports: from_release[0] is "),
    "guesses otherwise": (believing("from_everything"), "developer reports: from_everything[0] is "),
}
QUICK = ("draws again on a repeat",)


OWN_BUDGET = """
import dataclasses
from compliance.games import release as game
from compliance.ledger.accountant import Budget
from compliance.ledger import Ledger
honest = game.open_trained
def opened(deal, release, draws=None):
    ledger = Ledger()
    ledger.set_budget(release.dataset, game.Neighbours.ATTRIBUTES, Budget(deal.release.terms.budget))
    ledger.allocate(release.dataset, "developer", deal.release.terms.budget)
    return dataclasses.replace(honest(deal, release, draws), ledger=ledger)
game.open_trained = opened
"""
ASKS_FOR_ALL = """
from developer.release import play as player
honest = player._ask
def ask(audits, deal, believed):
    deal.terms.queried.epsilon = deal.terms.budget
    return honest(audits, deal, believed)
player._ask = ask
"""
OF_MIXTURES: dict[str, tuple[Mapping[str, str], str]] = {
    "a budget of the queries' own": (
        {"compliance": OWN_BUDGET},
        "compliance reports: release_spent is 3.0, recomputed 4.0",
    ),
    "a budget of the queries' own, all of it spent": (
        {"compliance": OWN_BUDGET, "developer": ASKS_FOR_ALL},
        "release and queries come to 7.0, more than the budget of 4.0",
    ),
    "guesses otherwise": (believing("from_mixture"), "developer reports: from_mixture[0] is "),
}


@NEEDS_LIGHTGBM
@pytest.mark.parametrize(
    ("parties", "text"),
    [pytest.param(*OF_MIXTURES[name], id=name, marks=pytest.mark.slow) for name in OF_MIXTURES],
)
def test_a_party_that_cheats_with_queries_is_named(
    table: Path, tmp_path: Path, twins: Twins, parties: Mapping[str, str], text: str
) -> None:
    twins(parties)
    texts = reported(verify(played(tmp_path, of(table, GRR), *MIX)))
    assert any(text in one for one in texts), texts


@pytest.mark.check
@NEEDS_LIGHTGBM
@pytest.mark.parametrize(
    ("parties", "text"),
    [pytest.param(*TWINS[name], id=name, marks=() if name in QUICK else pytest.mark.slow) for name in TWINS],
)
def test_a_party_that_cheats_is_named(
    table: Path, tmp_path: Path, twins: Twins, parties: Mapping[str, str], text: str
) -> None:
    twins(parties)
    texts = reported(verify(played(tmp_path, of(table, GRR))))
    assert any(one.startswith(f"deal-1: {text}") for one in texts), texts


HANDS_NOTHING_OVER = """
from developer.release import play as player
player._hand = lambda *_, **__: None
player._audit = lambda *_: 0
"""


@pytest.mark.check
@NEEDS_LIGHTGBM
def test_a_developer_that_hands_no_model_over_ends_the_run_in_one_line(
    table: Path, tmp_path: Path, twins: Twins
) -> None:
    twins({"developer": HANDS_NOTHING_OVER})
    with pytest.raises(TrialFailed, match="compliance reports no figures of a model"):
        played(tmp_path, of(table, GRR))


# What cannot be played.

WEIGHTS = "release.split='weights'"
UNNAMED = ("data.sensitive=[]",)
JOBS = "data.candidates=['age', 'job']"
BAD: dict[str, tuple[tuple[str, ...], str]] = {
    "a domain of one value": (("data.sensitive=['group', 'one']", "data.drop=['many']"), "this one has 1"),
    "too many values": (("data.drop=['one']",), "column 'many' has 300 different values, more than 200"),
    "epsilon 0": (("release.epsilon=0",), "release.epsilon: must be a positive number"),
    "epsilon below 0": (("release.epsilon=-1.0",), "release.epsilon: must be a positive number"),
    "epsilon NaN": (("release.epsilon=nan",), "release.epsilon: must be a positive number"),
    "epsilon beyond the protocols": (("release.epsilon=2000.0",), "epsilon must be above 0 and at most 700"),
    "no epsilon": (("release.epsilon='inf'",), "release.epsilon: is missing, or infinite"),
    "an epsilon for a control": (("release.protocol='dropped'",), "release.epsilon: dropped sanitises nothing"),
    "weights that sum to more": ((WEIGHTS, "release.weights=[0.5, 0.6]"), "weights must sum to 1, these sum to 1.1"),
    "a weight too few": ((WEIGHTS, "release.weights=[1.0]"), "2 sensitive attributes need as many weights"),
    "a weight below 0": ((WEIGHTS, "release.weights=[-1.0, 2.0]"), "weights must be finite numbers above 0"),
    "weights without their split": (("release.weights=[0.5, 0.5]",), "release.weights: go with split"),
    "their split without weights": ((WEIGHTS,), "release.weights: go with split"),
    "a protected column in the open": (("data.sensitive=['age']",), "the protected column 'group' must be sensitive"),
    "a sensitive label": (("data.sensitive=['group', 'y']",), "no feature 'y'"),
    "an unknown column": (("data.sensitive=['group', 'nobody']",), "no feature 'nobody'"),
    "the fairest release of two columns": (
        ("release.protocol='fair-1'",),
        "fair-1 releases the protected column alone, and 2 columns are sensitive: set data.sensitive",
    ),
    "a sensitive column twice": (("data.sensitive=['group', 'age', 'age']",), "data.sensitive: names 'age' twice"),
    "sensitive columns both named and drawn": (("data.sensitive_drawn=[2, 2]",), "data.sensitive: is named where"),
    "fewer than two drawn": ((*UNNAMED, "data.sensitive_drawn=[1, 2]"), "data.sensitive_drawn: must be the least and"),
    "more drawn at least than at most": (
        (*UNNAMED, "data.sensitive_drawn=[3, 2]"),
        "data.sensitive_drawn: must be the",
    ),
    "more drawn than there are": ((*UNNAMED, "data.sensitive_drawn=[2, 4]", JOBS), "too few to draw 4"),
    "drawn from nothing": ((*UNNAMED, "data.sensitive_drawn=[2, 2]"), "has no candidates of its own"),
    "drawn from one value": (
        (*UNNAMED, "data.sensitive_drawn=[2, 3]", "data.drop=['many']", "data.candidates=['age', 'one']"),
        "candidate 'one' has one value",
    ),
    "candidates for nothing": ((JOBS,), "data.candidates: go with data.sensitive_drawn"),
    "weights for what is drawn": (
        (*UNNAMED, "data.sensitive_drawn=[2, 2]", JOBS, WEIGHTS, "release.weights=[0.5, 0.5]"),
        "release.split: weights fit no columns that each trial draws",
    ),
    "queries without a share": (("release.queries=5",), "release.queries: go with a release.queries_share"),
    "a share without queries": (("release.queries_share=0.5",), "release.queries: go with a release.queries_share"),
    "a share above 1": ((*MIX[:1], "release.queries_share=1.5"), "release.queries_share: "),
    "a share below 0": ((*MIX[:1], "release.queries_share=-0.5"), "release.queries_share: "),
    "queries answered exactly": (MIX[:2], "release.queries: must be answered by one of laplace, "),
    "queries beside a split with an epsilon of its own": (
        (*MIX, "release.split='uniform-at-k-based'"),
        "release.queries: share out one epsilon, and split uniform-at-k-based spends another one",
    ),
    "queries beside a control": (
        (*MIX, "release.protocol='clean'", "release.epsilon='inf'"),
        "of which clean has none",
    ),
    "a search for no queries": (("release.asked='searched'",), "release.asked: chooses how many of release.queries"),
    "queries that are asked otherwise": ((*MIX, "release.asked='some'"), "release.asked: must be "),
    "an unknown protocol": (("release.protocol='laplace'",), "release.protocol: must be one of grr, "),
}
OF_THE_TABLE = {
    *("a domain of one value", "too many values", "epsilon beyond the protocols", "weights that sum to more"),
    *("a weight too few", "a weight below 0", "a protected column in the open", "a sensitive label"),
    *("an unknown column", "the fairest release of two columns", "more drawn than there are", "drawn from nothing"),
    "drawn from one value",
}
"""What is found when the table is read; all else, when the scenario is."""


@pytest.mark.few(4)
@NEEDS_LIGHTGBM
@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_played_is_one_line_and_nothing_is_left_behind(table: Path, tmp_path: Path, what: str) -> None:
    changes, text = BAD[what]
    scenario = tmp_path / "small.toml"
    scenario.write_text(of(table, GRR))
    settings = [word for change in changes for word in ("--set", change)]
    # One session's parties are started before the scenario is read, those of several only to play it.
    jobs = () if what in OF_THE_TABLE else ("--jobs", 2)
    done = fairwall("run", scenario, *settings, "--out", "runs", *jobs, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("fairwall: ")
    assert text in line
    assert list(tmp_path.iterdir()) == [scenario]


@pytest.mark.check
def test_without_the_extra_a_line_says_what_to_install(table: Path, tmp_path: Path) -> None:
    scenario = tmp_path / "small.toml"
    scenario.write_text(of(table, GRR))
    hidden = "import sys; sys.modules['lightgbm'] = None"
    done = patched(hidden, "run", str(scenario), "--out", "runs", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert "pip install 'fairwall[release]'" in line
    assert list(tmp_path.iterdir()) == [scenario]
