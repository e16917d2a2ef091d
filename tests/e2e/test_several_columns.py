"""Gaps by several protected columns of one data set: real services, one budget, since a person loses once."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w

from compliance.answers import audits as answering
from compliance.answers.expectation import expected_about
from compliance.answers.exposure import exposure_about
from compliance.deployment.policy.loading import load
from compliance.deployment.policy.reading import read
from compliance.ledger.entries import LedgerEntry
from compliance.ledger.place import inspect
from fairwall.client import AuditClient, gaps
from fairwall.compliance.v1.audit_service_pb2 import AuditResponse
from fairwall.rpc.arrays import ArrayError
from sim.attestation.check import check
from tests.e2e.test_serve import deployment, serving
from tests.e2e.test_serve import refusal as refused
from tests.support.command import fairwall

PEOPLE = 600
RNG = np.random.default_rng(3)
RACE = RNG.choice(["White", "Asian", "Black", "Other"], PEOPLE, p=[0.4, 0.1, 0.3, 0.2])
SEX = RNG.choice(["Male", "Female"], PEOPLE, p=[0.7, 0.3])
LABEL = (RNG.random(PEOPLE) < 0.4).astype(int)
SCORES = np.where(np.isin(RACE, ["White", "Asian"]), 0.75, 0.25) + np.where(SEX == "Male", 0.125, -0.125)
BY = {"race": ["White", "Asian"], "sex": ["Male"]}


def exact(column: np.ndarray, advantaged: list[str], scores: np.ndarray = SCORES) -> float:
    inside = np.isin(column, advantaged)
    return float(scores[inside].mean() - scores[~inside].mean())


def people(folder: Path, race: np.ndarray = RACE, sex: np.ndarray = SEX) -> None:
    lines = [f"{i},{race[i]},{sex[i]},{LABEL[i]}" for i in range(PEOPLE)]
    (folder / "people.csv").write_text("\n".join(["id,race,sex,repaid", *lines]) + "\n")
    (folder / "people.csv").chmod(0o600)


def written(folder: Path, by: Any = BY, mechanism: str = "counts", **data: Any) -> Path:
    policy = tomllib.loads((folder / "policy.toml").read_text())
    own = {"source": "people.csv", "protected": by, "label": "repaid", "positive": "1", "minimum_group": 20, "id": "id"}
    others = {"disadvantaged": {"race": ["Black", "Other"]}} if "race" in by else {}
    policy["data"] = own | others | data
    policy["audit"] = {"metrics": ["sp", "eo"], "mechanism": mechanism, "queries_max": 20, "reveal_max": 1.0}
    policy["budget"]["epsilon"] = 40.0
    policy["developers"] = {"alice": {"epsilon": 30.0}, "bob": {"epsilon": 2.0}}
    (folder / "policy.toml").write_text(tomli_w.dumps(policy))
    return folder


@pytest.fixture
def own(tmp_path: Path) -> Path:
    deployment(tmp_path)
    people(tmp_path)
    return written(tmp_path)


def ask(audits: AuditClient, epsilon: float, by: str = "", **more: Any) -> float:
    return float(audits.ask(SCORES, "sp", epsilon, by=by, ids=[str(i) for i in range(PEOPLE)], **more).gaps[0])


@pytest.mark.check
def test_gaps_are_by_each_column_out_of_one_budget(own: Path) -> None:
    with serving(own) as running, running.client() as audits:
        assert audits.terms().by == ("race", "sex")
        assert ask(audits, 10.0, "race", request_id="race") == pytest.approx(exact(RACE, BY["race"]), abs=0.02)
        assert ask(audits, 10.0, "sex", request_id="sex") == pytest.approx(exact(SEX, BY["sex"]), abs=0.02)
        assert ask(audits, 5.0, request_id="first") == pytest.approx(exact(RACE, BY["race"]), abs=0.02)
        assert audits.terms().epsilon_remaining == pytest.approx(5.0)
        told = audits.ask(SCORES, "sp", 10.0, by="sex", ids=[str(i) for i in range(PEOPLE)], request_id="sex")
        assert (told.by, told.epsilon_remaining_now) == ("sex", 5.0)
        # An id stands for one column, too; and what is not there costs nothing.
        assert refusal(lambda: ask(audits, 10.0, "race", request_id="sex")) == "REQUEST_ID_REUSED"
        unknown = [refusal(partial(ask, audits, 1.0, column)) for column in ("repaid", "Race", "nobody", "id")]
        assert unknown == ["COLUMN_UNKNOWN"] * 4
        assert refusal(lambda: ask(audits, 6.0, "sex")) == "BUDGET_EXHAUSTED"
        assert audits.terms().epsilon_remaining == pytest.approx(5.0)


@pytest.mark.check
def test_a_signed_page_says_by_which_column(own: Path) -> None:
    with serving(own) as running, running.client() as audits:
        for by in ("sex", ""):
            ask(audits, 3.0, by, request_id=by or "none")
    report = ("deploy", "ledger", "report", "--policy", own / "policy.toml", "--out", own / "page.html")
    assert fairwall(*report).returncode == 0
    account = check(own / "page.html", authority=own / "certificates/developer-alice/authority.pem").account
    assert [(audit["request"], audit["by"]) for audit in account["audits"]] == [("sex", "sex"), ("none", "race")]
    shown = fairwall("deploy", "ledger", "export", own / "ledger" / "ledger.sqlite").stdout
    assert [line["by"] for line in map(json.loads, shown.splitlines()) if line.get("record") == "charge"] == [
        "sex",
        "race",
    ]
    page = (own / "page.html").read_text()
    assert "Answers: sp by race" in page
    assert "Answers: sp by sex" in page
    np.save(own / "scores.npy", SCORES[np.argsort([str(i).encode() for i in range(PEOPLE)])])
    with serving(own) as running, running.client() as audits:
        rows = audits.terms().rows
        assert rows is not None
    words = ("--predictions", own / "scores.npy", "--rows", rows.ids_digest.hex())
    authority = ("--authority", own / "certificates/developer-alice/authority.pem")
    found = fairwall("deploy", "ledger", "check", own / "page.html", *authority, *words)
    assert found.returncode == 0, found.stdout
    assert found.stdout.count("asked about in record") == 2


def refusal(call: Callable[[], object]) -> str:
    return refused(call)[0]


def bought(own: Path) -> list[tuple[str, float, str]]:
    (found,) = inspect(own / "ledger" / "ledger.sqlite")
    entries = [record for record in found.records if isinstance(record, LedgerEntry)]
    return [(each.request.request_id, each.request.loss.epsilon, answering.column_of(each)) for each in entries]


def by_cells(own: Path) -> tuple[list[float], list[tuple[str, float, str]]]:
    """Ask by race, by sex, and by both again, where a second question is answered from what was bought."""
    written(own, mechanism="cells")
    with serving(own) as running, running.client() as audits:
        told = [ask(audits, 8.0, by, request_id=f"{by}-{place}") for place in (1, 2) for by in BY]
    return told, bought(own)


@pytest.mark.check
def test_what_was_bought_of_one_column_answers_for_no_other(own: Path) -> None:
    told, charged = by_cells(own)
    assert [each[1:] for each in charged] == [(8.0, "race"), (8.0, "sex"), (0.0, "race"), (0.0, "sex")]
    race, sex = exact(RACE, BY["race"]), exact(SEX, BY["sex"])
    assert told == pytest.approx([race, sex, race, sex], abs=0.03)


@pytest.mark.slow(seconds=15)
def test_a_service_that_mixes_columns_up_is_found_out(own: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The broken twin: facts without a name of their own, so that race's cells answer for sex."""
    twin = tmp_path_factory.mktemp("twin") / "twin.py"
    twin.write_text(
        "from compliance.answers import audits\n"
        "from compliance.__main__ import main\n"
        "sound = audits._encode\n"
        "audits._encode = lambda facts, under=b'': sound(facts)\n"
        "read = audits.facts_of\n"
        "audits.facts_of = lambda bought, under=b'': read(bought)\n"
        "main()\n"
    )
    written(own, mechanism="cells")
    with serving(own, ("-I", str(twin), "--policy")) as running, running.client() as audits:
        for by in BY:
            ask(audits, 8.0, by, request_id=by)
    assert [each[1:] for each in bought(own)] != [(8.0, "race"), (8.0, "sex")]


@pytest.mark.slow(seconds=60)
def test_columns_may_come_later_and_none_stands_for_other_people(own: Path) -> None:
    """What was bought about a column's values is kept for these; the first column's are what the name stands for."""
    written(own, by="sex", mechanism="cells", advantaged="Male")
    with serving(own) as running, running.client() as audits:
        first = ask(audits, 4.0, request_id="alone")
    written(own, by={"sex": ["Male"], "race": ["White", "Asian"]}, mechanism="cells")
    with serving(own) as running, running.client() as audits:
        assert ask(audits, 4.0, "", request_id="alone") == first
        ask(audits, 4.0, "sex", request_id="free")
        ask(audits, 4.0, "race", request_id="race")
    people(own, race=np.roll(RACE, 1))
    with serving(own) as running, running.client() as audits:
        ask(audits, 4.0, "race", request_id="of others")
    assert [each[1] for each in bought(own)] == [4.0, 0.0, 4.0, 4.0]
    people(own)
    written(own, mechanism="cells")  # race is the first now
    done = fairwall("deploy", "serve", "--policy", own / "policy.toml")
    assert done.returncode == 2
    assert "this name stands for other data" in done.stderr


@pytest.mark.check
def test_what_an_answer_will_be_worth_is_the_same_by_every_column(own: Path) -> None:
    """A request for it names none: nobody looks at who is in which group, nor at how many are."""
    for mechanism, metric in (("laplace", "sp"), ("cells", "eo")):
        ((_, policy),) = read(written(own, mechanism=mechanism) / "policy.toml").datasets.items()
        by_race, by_sex = load(policy)[0].values()
        assert by_race.counts(metric) != by_sex.counts(metric)
        for told in (expected_about, exposure_about):
            one, other = (
                told(each, policy.mechanism, metric, 3, 1.0, 0.0, policy.shares) for each in (by_race, by_sex)
            )
            assert one == other


def turned(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        policy = tomllib.loads((folder / "policy.toml").read_text())
        change(policy)
        (folder / "policy.toml").write_text(tomli_w.dumps(policy))

    return write


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("change", "line"),
    [
        (turned(lambda p: p["data"].update(advantaged="White")), "data.advantaged: goes with one protected column"),
        (
            turned(lambda p: p["data"].update(disadvantaged="x")),
            "data.disadvantaged: must be values of one protected column",
        ),
        (turned(lambda p: p["data"].update(protected="race")), "data.advantaged: is missing"),
        (turned(lambda p: p["data"].update(protected={})), "data.protected"),
        (turned(lambda p: p["data"].update(protected={"race": []})), "data.protected"),
        (turned(lambda p: p["data"].update(protected={"race": ["Green"]})), "has no value 'Green'"),
        (
            turned(lambda p: p["data"].update(protected={"sex": ["Male", "Female"]}, disadvantaged={})),
            "the disadvantaged group is empty",
        ),
        (
            turned(lambda p: p["data"].update(protected={"race": ["White", "Asian"], "repaid": ["1"]})),
            "both protected and the",
        ),
        (turned(lambda p: p["data"].update(protected={"race": ["White"], "age": ["1"]})), "'age'"),
        (turned(lambda p: p["data"].update(public=["sex"])), "data.public: must not have a protected column"),
        (turned(lambda p: p["data"].update(minimum_group=200)), "data.minimum_group: metric"),
        (turned(lambda p: p["data"].update(source="parquet:people.parquet")), "data.protected: must be one column"),
    ],
)
def test_what_cannot_be_served_is_one_line(own: Path, change: Callable[[Path], None], line: str) -> None:
    change(own)
    done = fairwall("deploy", "check", "--policy", own / "policy.toml")
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert line in done.stderr


def test_a_value_that_nobody_has_is_missing_in_each_column_alike(own: Path) -> None:
    race = RACE.copy()
    race[7] = ""
    people(own, race=race)
    done = fairwall("deploy", "check", "--policy", own / "policy.toml")
    assert done.returncode == 2
    assert "missing values: race 1 of 600 rows" in done.stderr.replace("'", "")


def test_a_client_of_several_columns_is_told_of_a_service_that_knows_one() -> None:
    """An older service would answer by its own column, whatever was asked for."""

    class Older:
        def Audit(self, parts: Any, timeout: float) -> AuditResponse:  # noqa: ARG002, N802
            return AuditResponse()

    with pytest.raises(ArrayError, match="by one protected column alone"):
        gaps.ask(Older(), "d", "r", "sp", np.zeros((1, 3)), 1.0, by="sex")  # type: ignore[arg-type]
