"""The tools for developers against a real service: what the page shows runs, and repeats are free."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
import yaml

from fairwall.client import Answer, AuditRefused, AuditUnavailable
from fairwall.tools.asynchronous import AsyncAuditClient
from fairwall.tools.classifiers import ask_about
from fairwall.tools.model_card import model_card
from fairwall.tools.scoring import GapScorer
from tests.e2e.test_serve import DOCS, Served, change, deployment, serving
from tests.support import forked_programs
from tests.support.loans_deployment import PREDICTIONS as LOANS_PREDICTIONS
from tests.support.loans_deployment import Deployment

if TYPE_CHECKING:
    from sklearn.linear_model import LogisticRegression

PAGE = (DOCS / "tools.md").read_text()
CONFTEST, TEST, RATIO, SCORER, MLFLOW, CARD, ASYNCIO, TABLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
(OPTIONS,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
(WORKFLOW,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def with_ids(folder: Path) -> Path:
    """The documented example, with ids; answered by noisy counts, of which a service knows soon what they are worth."""
    deployment(folder)
    for name in ("policy.toml", "loans.csv"):
        shutil.copyfile(DOCS / "example" / name, folder / name)
    change(folder, listen="127.0.0.1:0", mechanism="counts")
    return folder


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(with_ids(tmp_path_factory.mktemp("tools"))) as running:
        yield running


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Served]:
    """A service whose budget is the test's own."""
    with serving(with_ids(tmp_path)) as running:
        yield running


def table(served: Served) -> pd.DataFrame:
    return pd.read_csv(served.folder / "loans.csv", index_col="id")


def fitted(served: Served, columns: tuple[str, ...] = ("income", "debt")) -> LogisticRegression:
    from sklearn.linear_model import LogisticRegression

    rows = table(served)
    return LogisticRegression(max_iter=1000).fit(rows[[*columns]], rows["repaid"])


def remaining(served: Served, name: str = "alice") -> float:
    with served.client(name) as audits:
        return audits.terms().epsilon_remaining


def program(served: Served, text: str) -> subprocess.CompletedProcess[str]:
    return forked_programs.run(
        [sys.executable, "-c", text.replace("127.0.0.1:7443", served.address)],
        capture_output=True,
        text=True,
        cwd=served.folder,
        timeout=300,
        check=False,
    )


def checked(served: Served, tests: str, options: str = OPTIONS) -> subprocess.CompletedProcess[str]:
    """Run tests of a team's, in the folder with its certificate."""
    for name, text in (("conftest.py", CONFTEST), ("pyproject.toml", options), ("test_fairness.py", tests)):
        (served.folder / name).write_text(text.replace("127.0.0.1:7443", served.address))
    return forked_programs.run(
        [sys.executable, "-m", "pytest", "-q", "-rs", "-W", "error", "-p", "no:cacheprovider"],
        capture_output=True,
        text=True,
        cwd=served.folder,
        timeout=300,
        check=False,
    )


@pytest.fixture
def grouped(tmp_path: Path) -> Iterator[Served]:
    """A service that also answers by group."""
    with_ids(tmp_path)
    policy = tmp_path / "policy.toml"
    policy.write_text(policy.read_text().replace("[audit]", '[data.groups]\ngroup = ["a", "b"]\n[audit]'))
    with serving(tmp_path) as running:
        yield running


@pytest.mark.check
def test_the_page_s_tests_run_and_cost_once(grouped: Served) -> None:
    spent = []
    for _ in range(2):
        run = checked(grouped, TEST + RATIO)
        assert run.returncode == 0, run.stdout
        spent.append(3 - remaining(grouped))
    assert spent == [1.0, 1.0]


def steps(workflow: str) -> list[dict[str, Any]]:
    """The steps of a workflow's one job."""
    (job,) = yaml.safe_load(workflow)["jobs"].values()
    return list(job["steps"])


def test_the_workflow_s_secrets_are_in_one_step_s_environment_and_in_no_script() -> None:
    told = yaml.safe_load(WORKFLOW)
    assert (told[True], told["permissions"]) == ("push", {"contents": "read"})  # YAML 1.1 reads `on` as true
    secret = [step["name"] for step in steps(WORKFLOW) if "secrets." in json.dumps(step)]
    assert secret == ["Write the certificate"]
    assert WORKFLOW.count("secrets.") == 3
    assert all("${{" not in step.get("run", "") for step in steps(WORKFLOW))
    for step in steps(WORKFLOW):
        assert ("run" in step) != ("uses" in step)
        assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step.get("uses", "a/b@v1"))
    (install,) = (shlex.split(step["run"]) for step in steps(WORKFLOW) if step.get("name") == "Install")
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text())["project"]
    assert install[:3] == ["pip", "install", "fairwall[groups]"]
    assert "groups" in project["optional-dependencies"]


@pytest.mark.check
def test_the_workflow_s_commands_audit_and_leave_no_key(served: Served, tmp_path: Path) -> None:
    own = served.folder / "certificates" / "developer-alice"
    shutil.copyfile(served.folder / "loans.csv", tmp_path / "loans.csv")
    for name, text in (("conftest.py", CONFTEST), ("pyproject.toml", OPTIONS), ("test_fairness.py", TEST)):
        (tmp_path / name).write_text(text.replace("127.0.0.1:7443", served.address))
    done = list[str]()
    for step in steps(WORKFLOW):
        if "run" not in step or step["name"] == "Install":
            continue
        secrets = {name: (own / f"{name.lower()}.pem").read_text() for name in step.get("env", {})}
        run = subprocess.run(
            ["bash", "-e", "-c", step["run"]],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", **secrets},
            timeout=300,
            check=False,
        )
        assert (run.returncode, run.stderr) == (0, ""), run.stdout
        assert "PRIVATE KEY" not in run.stdout
        done.append(run.stdout)
        if secrets:
            assert {path.name for path in (tmp_path / "certificates/developer-alice").iterdir()} == {
                *("authority.pem", "certificate.pem", "key.pem")
            }
    assert "1 passed" in done[1]
    assert list(tmp_path.rglob("*.pem")) == []


FAILING = """
def test_gap(audit, model):
    assert audit.gap("demographic_parity", model, name="linear") < -1

def test_gap_at_most(audit, model):
    found = audit.gap_at_most("sp", model)
    assert found < -1

def test_ratio(audit, model):
    assert audit.ratio("group", model) > 2

def test_ratio_at_least(audit, model):
    assert audit.ratio_at_least(["group"], model) > 2

def test_answer(audit, model):
    assert audit.ask("sp", model) is None

def test_table(audit, model):
    assert audit.by_group("group", model) is None
"""


@pytest.mark.check
def test_what_failed_is_told_with_its_interval_and_its_cost_and_nobody_s_row(grouped: Served) -> None:
    run = checked(grouped, TEST + FAILING)
    assert run.returncode == 1
    assert "6 failed, 1 passed" in run.stdout
    interval = r"the exact one between -?\d\.\d{3} and -?\d\.\d{3}; epsilon 0\.5, \d(?:\.\d)? is left"
    for name in ("demographic_parity of linear", "sp of LogisticRegression"):
        assert re.search(rf"E .*assert \d\.\d+ \({name} is -?\d\.\d{{3}}, {interval}\) < -1", run.stdout), run.stdout
    ratio = rf"selection_rate of LogisticRegression by group: [ab] to [ab] is \d\.\d{{3}}, {interval}"
    found = [float(one) for one in re.findall(rf"E .*assert (\d\.\d+) \({ratio}\) > 2", run.stdout)]
    assert len(found) == 2
    assert found[0] > found[1], "the end of the interval is below the estimate"
    shown = run.stdout.replace(str(grouped.folder), "").replace("max_iter=1000", "")
    assert not set(re.findall(r"(?<![\d.])\d{4}(?!\d)", shown)) & {str(one) for one in table(grouped).index}


@pytest.mark.check
@pytest.mark.parametrize(("when", "status", "said"), [("", 1, "FAILED"), ("fail", 1, "FAILED"), ("skip", 0, "SKIPPED")])
def test_an_exhausted_budget_fails_or_skips_in_one_line(own: Served, when: str, status: int, said: str) -> None:
    with own.client() as audits:
        for epsilon in (2.0, 0.75):
            audits.ask(np.full(3000, 0.5), "sp", epsilon, ids=table(own).index)
    options = OPTIONS + (f'audit_when_exhausted = "{when}"\n' if when else "")
    run = checked(own, TEST, options)
    assert run.returncode == status, run.stdout
    why = "not audited: the remaining privacy budget does not cover this batch: 0.25 is left, 0.5 is needed"
    assert why in " ".join(run.stdout.split())
    assert "Traceback" not in run.stdout
    assert "def test_both_groups" not in run.stdout, "the line, and no frames"
    assert remaining(own) == 0.25


@pytest.mark.check
@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda text: text.replace('audit_epsilon = "0.5"', ""), "audit_epsilon: is missing"),
        (lambda text: text.replace('"0.5"', '"half"'), "audit_epsilon: must be a number"),
        (lambda text: text + 'audit_when_exhausted = "pass"', "audit_when_exhausted: must be fail or skip"),
    ],
)
def test_options_that_are_wrong_are_named(served: Served, tmp_path: Path, spoil: object, why: str) -> None:
    for name, text in (("conftest.py", CONFTEST), ("pyproject.toml", spoil(OPTIONS)), ("test_fairness.py", TEST)):  # type: ignore[operator]
        (tmp_path / name).write_text(text)
    shutil.copyfile(served.folder / "loans.csv", tmp_path / "loans.csv")
    run = forked_programs.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=300,
        check=False,
    )
    assert run.returncode != 0
    assert why in run.stdout + run.stderr


@pytest.mark.check
def test_the_page_s_search_runs(own: Served) -> None:
    run = program(own, SCORER)
    assert (run.returncode, run.stderr) == (0, "")
    assert re.match(r"\[-\d\.\d+ ", run.stdout)
    assert 0.1 <= 3 - remaining(own) <= 0.5


@pytest.mark.check
def test_a_score_is_minus_the_answer_s_size_and_is_paid_for_once(own: Served) -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_score

    rows, model = table(own), fitted(own)
    X = rows[["income", "debt"]]
    scorer = GapScorer(own.address, own.folder / "certificates/developer-alice", "sp", 0.25, X)
    first = scorer(model, X, rows["repaid"])
    shuffled = GapScorer(own.address, own.folder / "certificates/developer-alice", "sp", 0.25, X.sample(frac=1))
    assert shuffled(model) == first <= 0
    with own.client() as audits:
        decided = (model.predict(X) == 1).astype(float)
        answer = audits.ask(decided, "sp", 0.25, ids=X.index, once=True)
        assert abs(answer.gaps[0]) == -first
        whole = pd.read_csv(own.folder / "loans.csv")
        by_table = audits.ask(decided, "sp", 0.25, table=whole, once=True)  # public columns are compared too
        assert by_table.request_id != answer.request_id
    assert remaining(own) == 2.5
    scores = cross_val_score(LogisticRegression(max_iter=1000), X, rows["repaid"], scoring=scorer, cv=2)
    assert ((scores <= 0) & np.isfinite(scores)).all()


@pytest.mark.check
def test_probabilities_may_be_audited_too(own: Served) -> None:
    X, model = table(own)[["income", "debt"]], fitted(own)
    with own.client() as audits:
        answer = ask_about(audits, model, X, "sp", 2.0, response="probabilities")
        same = audits.ask(pd.Series(model.predict_proba(X)[:, 1], X.index), "sp", 2.0, once=True)
    assert same.gaps == answer.gaps


def test_what_cannot_be_scored_is_refused_in_a_line(served: Served) -> None:
    from sklearn.linear_model import LogisticRegression

    X = table(served)[["income", "debt"]]
    with pytest.raises(ValueError, match="metric di is a ratio"):
        GapScorer(served.address, served.folder / "certificates/developer-alice", "di", 0.1, X)
    scorer = GapScorer(served.address, served.folder / "certificates/developer-alice", "sp", 0.1, X)
    with pytest.raises(ValueError, match="two classes to be audited, and has 0"):
        scorer(LogisticRegression())
    three = LogisticRegression().fit(X, np.arange(len(X)) % 3)
    with pytest.raises(ValueError, match="two classes to be audited, and has 3"):
        scorer(three)


DOUBLE = """
import contextlib, json, sys, types
logged = []
double = types.ModuleType("mlflow")
double.log_metric = lambda key, value, step=None: logged.append([key, value, step])
double.set_tag = lambda key, value: logged.append([key, value])
double.start_run = contextlib.nullcontext
sys.modules["mlflow"] = double
"""


@pytest.mark.check
def test_the_page_s_answer_is_logged(own: Served) -> None:
    """A double with the calls that MLflow documents stands for MLflow, which is not installed."""
    run = program(own, DOUBLE + MLFLOW + "\nprint(json.dumps(logged))")
    assert (run.returncode, run.stderr) == (0, "")
    logged = {line[0]: line[1:] for line in json.loads(run.stdout)}
    assert list(logged) == [
        *("audit_sp_gap", "audit_sp_low", "audit_sp_high", "audit_sp_likely_low", "audit_sp_likely_high"),
        *("audit_epsilon_charged", "audit_epsilon_remaining", "audit_sp_request"),
    ]
    (gap, step), (low, _), (high, _) = (logged[f"audit_sp_{name}"] for name in ("gap", "low", "high"))
    assert step == 0
    assert low <= high
    assert (logged["audit_epsilon_charged"][0], logged["audit_epsilon_remaining"][0]) == (0.2, 2.8)
    rows = pd.read_csv(own.folder / "loans.csv")
    with own.client() as audits:
        (request_id,) = logged["audit_sp_request"]
        again = audits.ask(rows["income"] > 30, "sp", 0.2, ids=rows["id"], request_id=request_id)
    assert again.gaps[0] == gap
    assert remaining(own) == 2.8


@pytest.mark.check
def test_the_page_s_card_says_what_was_answered(own: Served) -> None:
    run = program(own, CARD)
    assert (run.returncode, run.stderr) == (0, "")
    _, front, section = run.stdout.split("---\n")
    (entry,) = yaml.safe_load(front)["model-index"]
    (result,) = entry["results"]
    (metric,) = result["metrics"]
    rows = pd.read_csv(own.folder / "loans.csv")
    with own.client() as audits:
        answer = audits.ask(rows["income"] > 30, "sp", 0.2, ids=rows["id"], once=True)
    assert (entry["name"], result["task"]["type"]) == ("credit-3", "tabular-classification")
    assert result["dataset"] == {"name": "loans", "type": "loans"}
    told = metric["args"] | {"type": metric["type"], "value": metric["value"]}
    assert date.fromisoformat(told.pop("date")) - datetime.now(UTC).date() >= timedelta(days=-1)
    assert told == {
        "type": "sp",
        "value": answer.gaps[0],
        "low": answer.low[0],
        "high": answer.high[0],
        "epsilon": 0.2,
        "models_in_batch": 1,
        "digest": answer.digest,
    }
    assert answer.digest.startswith(answer.request_id)
    assert f"was {answer.gaps[0]:.3f} on" in section
    assert f"between {answer.low[0]:.3f} and {answer.high[0]:.3f} in at least 95% of cases" in section
    assert "This number is noisy" in section
    assert answer.request_id in section
    assert remaining(own) == 2.8


def answered(**given: Any) -> Answer:
    """An answer about two models, which nobody gave."""
    numbers = {name: np.array([1e-5, np.inf]) for name in ("gaps", "low", "high", "likely_low", "likely_high")}
    told = {"epsilon_charged": 1e-6, "epsilon_remaining": 1.0, "epsilon_remaining_now": 1.0, "request_id": "ab"}
    return Answer(**(numbers | told | {"data": "loans", "metric": "di", "digest": "abcd"} | given))


def test_a_card_has_any_name_and_number_and_says_where_nothing_is_guaranteed() -> None:
    name = 'the "second": one, \N{SNOWMAN} & \\'
    for model, value in ((0, 1e-5), (1, np.inf)):
        front = yaml.safe_load(model_card(answered(), name, model=model).split("---\n")[1])
        (metric,) = front["model-index"][0]["results"][0]["metrics"]
        assert front["model-index"][0]["name"] == name
        assert (metric["value"], metric["args"]["low"], metric["args"]["epsilon"]) == (value, value, 1e-6)
    unsure = model_card(answered(low=np.full(2, np.nan), high=np.full(2, np.nan)), "m", on=date(2025, 1, 31))
    (metric,) = yaml.safe_load(unsure.split("---\n")[1])["model-index"][0]["results"][0]["metrics"]
    assert metric["args"] == {"epsilon": 1e-6, "models_in_batch": 2, "digest": "abcd", "date": "2025-01-31"}
    assert "What is guaranteed: of the exact one, nothing." in unsure
    assert "95%" not in unsure
    with pytest.raises(ValueError, match="ask with once=True"):
        model_card(answered(digest=""), "m")
    for model in (-1, 2):
        with pytest.raises(ValueError, match="the answer has 2 models"):
            model_card(answered(), "m", model=model)
    for name in ("", "a\nb"):
        with pytest.raises(ValueError, match="name must be one line"):
            model_card(answered(), name)


@pytest.mark.check
def test_the_page_s_asyncio_program_runs(own: Served) -> None:
    runs = [program(own, ASYNCIO) for _ in range(2)]
    assert {(run.returncode, run.stderr) for run in runs} == {(0, "")}
    assert len({run.stdout for run in runs}) == 1
    assert len(runs[0].stdout.splitlines()) == 2
    assert remaining(own) == 2.8


@pytest.mark.check
def test_the_page_s_file_is_asked_about(own: Served) -> None:
    rows = pd.read_csv(own.folder / "loans.csv").sample(frac=1, random_state=1)
    scores = pd.DataFrame({"above": rows["income"] > 30, "customer": rows["id"]})
    scores.to_parquet(own.folder / "scores.parquet", index=False)
    run = program(own, TABLES)
    assert (run.returncode, run.stderr) == (0, "")
    with own.client() as audits:
        again = audits.ask(rows["income"] > 30, "sp", 0.2, ids=rows["id"], once=True)
    assert run.stdout == f"{again.gaps}\n"
    assert remaining(own) == 2.8


def test_asyncio_gets_the_same_answers_terms_and_refusals(own: Served) -> None:
    rows = pd.read_csv(own.folder / "loans.csv")
    folder = own.folder / "certificates/developer-alice"
    batch = np.stack([rows["income"] / 100, rows["debt"] / 100])
    ways: dict[str, dict[str, Any]] = {
        "ids": {"ids": rows["id"]},
        "a threshold": {"ids": rows["id"], "threshold": 0.1},
        "a table": {"table": rows},
    }

    async def ask(request: str, **options: Any) -> Answer:
        async with AsyncAuditClient(own.address, folder) as audits:
            return await audits.ask(batch, "sp", 0.1, request_id=request, **options)

    async def all_at_once() -> list[Answer]:
        return await asyncio.gather(*(ask(way, **options) for way, options in ways.items()))

    asyncio.run(all_at_once())
    answers = asyncio.run(all_at_once())  # with what is left after all of them
    with own.client() as audits:
        for (way, options), answer in zip(ways.items(), answers, strict=True):
            same = audits.ask(batch, "sp", 0.1, request_id=way, **options)
            assert (repr(same), same.request_id) == (repr(answer), answer.request_id)
        terms = audits.terms()

    async def refused() -> None:
        async with AsyncAuditClient(own.address, folder) as audits:
            assert await audits.terms() == terms
            for _ in range(20):
                with pytest.raises(AuditRefused, match="it has 3000 people"):
                    await audits.ask(batch[:, 1:], "sp", 0.1)
            with pytest.raises(AuditRefused, match="used before for another request"):
                await audits.ask(batch, "sp", 0.2, request_id="ids", ids=rows["id"])
            with pytest.raises(ValueError, match="2,999 are given, and the service has 3,000"):
                await audits.ask(batch[:, 1:], "sp", 0.1, ids=rows["id"][1:])
            assert await audits.terms() == terms

    asyncio.run(refused())


@pytest.mark.check
def test_asyncio_asks_what_practice_asks(grouped: Served) -> None:
    rows = pd.read_csv(grouped.folder / "loans.csv")
    scores, segments = rows["income"].to_numpy() / 100, rows["years_employed"] > 5
    named = {"ids": rows["id"], "by": "group", "epsilon": 0.1}
    ways: dict[str, dict[str, Any]] = {
        "by_quantile": {"scores": scores, "quantiles": 4, **named},
        "by_segment": {"decisions": scores > 0.3, "segments": segments, **named},
        "standardised_difference": {"values": scores, "bounds": (0, 1), **named},
        "expected_error": {"metric": "sp", "models": 2, "epsilon": 0.1},
    }
    for name in [*ways][:3]:
        ways[name]["request_id"] = name

    async def ask() -> list[Any]:
        async with AsyncAuditClient(grouped.address, grouped.folder / "certificates/developer-alice") as audits:
            return [await getattr(audits, name)(**asked) for name, asked in ways.items()]

    first, again = asyncio.run(ask()), asyncio.run(ask())  # with what is left after all of them
    with grouped.client() as audits:
        same = [getattr(audits, name)(**asked) for name, asked in ways.items()]
    assert [*map(repr, again)] == [*map(repr, same)]
    assert first[-2:] == again[-2:]
    assert remaining(grouped) == pytest.approx(2.7)


@pytest.mark.check
def test_asyncio_is_not_refused_for_asking_too_much_at_once(own: Served) -> None:
    async def ask() -> None:
        async with AsyncAuditClient(own.address, own.folder / "certificates/developer-alice") as audits:
            told = await asyncio.gather(*(audits.terms() for _ in range(40)))
            assert len({terms.epsilon_remaining for terms in told}) == 1

    asyncio.run(ask())


@pytest.mark.check
def test_asyncio_asks_again_where_a_service_was_restarted_and_is_charged_once(tmp_path: Path) -> None:
    deployment = Deployment(tmp_path)
    folder = tmp_path / "certificates" / "developer-alice"

    async def ask() -> tuple[bytes, bytes]:
        async with AsyncAuditClient(deployment.address, folder) as audits:
            with deployment.served() as process:
                first = await audits.ask(LOANS_PREDICTIONS, "sp", 2.0**-10, request_id="once")
                process.send_signal(signal.SIGKILL)
                process.wait()
            with pytest.raises(AuditUnavailable, match="nobody is there"):
                async with AsyncAuditClient(deployment.address, folder) as other:
                    await other.terms()
            with deployment.started():
                again = await audits.ask(LOANS_PREDICTIONS, "sp", 2.0**-10, request_id="once")
            return first.gaps.tobytes(), again.gaps.tobytes()

    first, again = asyncio.run(ask())
    assert first == again
    assert len(deployment.entries()) == 1


def test_a_request_id_is_given_or_made_and_not_both(served: Served) -> None:
    with served.client() as audits, pytest.raises(ValueError, match="leave request_id out"):
        audits.ask(np.zeros(3000), "sp", 0.1, request_id="x", once=True)


@pytest.mark.check
def test_every_question_has_an_id_of_its_own(own: Served) -> None:
    rows = pd.read_csv(own.folder / "loans.csv")
    asked: list[dict[str, Any]] = [
        {},
        {"epsilon": 0.11},
        {"metric": "eo"},
        {"threshold": 0.0},
        {"table": rows, "ids": None},
        {"predictions": np.full(3000, 0.25)},
    ]
    with own.client() as audits:
        for _ in range(2):
            usual = {"predictions": np.full(3000, 0.5), "metric": "sp", "epsilon": 0.1, "ids": rows["id"]}
            ids = {audits.ask(**(usual | changed), once=True).request_id for changed in asked}
            assert len(ids) == len(asked)
            assert all(re.fullmatch("[0-9a-f]{32}", one) for one in ids)
            assert audits.terms().epsilon_remaining == pytest.approx(3 - 0.61)
