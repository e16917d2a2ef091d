"""People who stay in an engine: a table is added up where it is; what is wrong with it is refused, and free."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w

from fairwall.client import AuditClient, AuditRefused
from tests.support import forked_programs, postgres_server
from tests.support.loans_deployment import Deployment

duckdb = pytest.importorskip("duckdb")
pytest.importorskip("ibis")

EPSILON = 2.0**20
PEOPLE = 60

_COPY = "COPY ({}) TO '{}' (FORMAT parquet)"
_GOOD = (
    "SELECT (i * 7) % 60 AS customer, (i % 5 = 0) AS m0, (i % 4 = 0)::TINYINT AS m1, (i % 11) / 10.0 AS m2 "
    "FROM range(60) t(i)"
)

BAD = {
    "twice": _GOOD + " WHERE customer <> 3 UNION ALL SELECT 4, true, 1, 0.5",
    "unknown": _GOOD.replace("(i * 7) % 60", "(i * 7) % 60 + 1"),
    "missing": _GOOD + " WHERE customer <> 3",
    "nulls": _GOOD.replace("(i % 5 = 0)", "nullif(i % 5 = 0, i = 10)"),
    "nans": _GOOD.replace("(i % 11) / 10.0", "CASE i WHEN 5 THEN 'NaN'::DOUBLE ELSE 0.5 END"),
    "infinite": _GOOD.replace("(i % 11) / 10.0", "CASE i WHEN 5 THEN 'inf'::DOUBLE ELSE 0.5 END"),
    "large": _GOOD.replace("(i % 11) / 10.0", "(i % 12) / 10.0"),
    "negative": _GOOD.replace("(i % 4 = 0)::TINYINT", "(i % 4 - 1)::TINYINT"),
}
OTHER = {
    "wide": f"SELECT *, m0 AS m3, m0 AS m4 FROM ({_GOOD})",
    "bare": f"SELECT customer FROM ({_GOOD})",
    "texts": f"SELECT customer, 'yes' AS m0 FROM ({_GOOD})",
}
TABLES = {"good": _GOOD} | BAD | OTHER
REASONS = {
    **dict.fromkeys(("twice", "unknown", "missing"), "ROWS_DIFFER"),
    **dict.fromkeys(("nulls", "nans", "infinite"), "PREDICTIONS_NOT_FINITE"),
    **dict.fromkeys(("large", "negative"), "PREDICTIONS_OUT_OF_RANGE"),
}


def laid_out(folder: Path, source: str = "parquet:people/*.parquet", **replaced: str) -> Deployment:
    """Lay out people and tables of predictions, half of the first in each of two files."""
    deployment = Deployment(folder)
    deployment.set_budget(2.0**40)
    (folder / "people").mkdir()
    people = "SELECT i AS customer, 'ab'[i % 2 + 1] AS \"group\", (i // 2 % 2) AS repaid FROM range(60) t(i)"
    with duckdb.connect() as engine:
        engine.execute(_COPY.format(people + " WHERE i < 30", folder / "people" / "0.parquet"))
        engine.execute(_COPY.format(people + " WHERE i >= 30", folder / "people" / "1.parquet"))
        for name, rows in TABLES.items():
            (folder / name).mkdir()
            engine.execute(_COPY.format(rows, folder / name / "0.parquet"))
    with duckdb.connect(folder / "bank.duckdb") as engine:
        engine.execute(f"CREATE TABLE people AS {people}")
        engine.execute(f"CREATE TABLE good AS {_GOOD.format('')}")
    tables = "".join(
        f'[tables.{name}]\nsource = "parquet:{name}/*.parquet"\ndevelopers = ["alice"]\n' for name in TABLES
    )
    text = (folder / "policy.toml").read_text() + tables
    replaced = {
        'source = "people.csv"': f'source = "{source}"\nid = "customer"',
        '"laplace"': '"counts"',
        "queries_max = 1": "queries_max = 4",
        '["sp"]': '["sp", "eo", "oad"]',
    } | replaced
    for old, new in replaced.items():
        assert old in text
        text = text.replace(old, new)
    (folder / "policy.toml").write_text(text)
    return deployment


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    made = laid_out(tmp_path_factory.mktemp("tables"))
    with made.served():
        yield made


@pytest.fixture
def audits(deployment: Deployment) -> Iterator[AuditClient]:
    with deployment.client("alice") as connected:
        yield connected


SCORES = (PLACES := np.argsort(np.arange(PEOPLE) * 7 % PEOPLE)) % 5 == 0, PLACES % 4 == 0, PLACES % 11 / 10
"""What the good table says of each person, in the order of ids, by its own columns m0, m1 and m2."""

GROUP = np.arange(PEOPLE) % 2
LABEL = np.arange(PEOPLE) // 2 % 2


def gap(scores: np.ndarray, members: np.ndarray) -> float:
    return float(scores[members & (GROUP == 0)].mean() - scores[members & (GROUP == 1)].mean())


def refused(audits: AuditClient, table: str, **asked: object) -> str:
    """Ask for what is refused, and see that it costs nothing; the reason."""
    before = audits.terms().epsilon_remaining
    with pytest.raises(AuditRefused) as caught:
        audits.ask_table(table, **({"metric": "sp", "epsilon": EPSILON, "id": "customer"} | asked))  # type: ignore[arg-type]
    assert audits.terms().epsilon_remaining == before
    return caught.value.reason


def test_a_table_s_answers_are_those_of_its_rows(audits: AuditClient) -> None:
    everybody, qualified = np.full(PEOPLE, True), LABEL == 1
    sp = audits.ask_table("good", "sp", EPSILON, id="customer")
    eo = audits.ask_table("good", "eo", EPSILON, id="customer", models=["m2", "m0"], threshold=0.0)
    oad = audits.ask_table("good", "oad", EPSILON, id="customer", models=["m0"])
    assert sp.gaps == pytest.approx([gap(scores, everybody) for scores in SCORES], abs=1e-4)
    assert eo.gaps == pytest.approx([gap(SCORES[2], qualified), gap(SCORES[0], qualified)], abs=1e-4)
    assert eo.probability_above is not None
    assert oad.gaps == pytest.approx([gap(SCORES[0] == LABEL, everybody)], abs=1e-4)
    assert sp.epsilon_charged == EPSILON
    assert ((sp.low <= sp.gaps) & (sp.gaps <= sp.high)).all()


@pytest.mark.check
def test_a_table_of_a_database_file_is_asked_about_there(tmp_path: Path) -> None:
    deployment = laid_out(
        tmp_path, "duckdb:bank.duckdb", **{'source = "parquet:good/*.parquet"': 'table = "main.good"'}
    )
    policy = tmp_path / "policy.toml"
    policy.write_text(policy.read_text().replace('\nid = "customer"', '\nid = "customer"\ntable = "people"'))
    with deployment.served(), deployment.client("alice") as audits:
        answer = audits.ask_table("good", "sp", EPSILON, id="customer")
        assert answer.gaps == pytest.approx([gap(scores, np.full(PEOPLE, True)) for scores in SCORES], abs=1e-4)
        with duckdb.connect(tmp_path / "bank.duckdb") as engine:  # nobody else holds it meanwhile
            engine.execute("UPDATE good SET m0 = NOT m0 WHERE customer = 1")
        assert audits.ask_table("good", "sp", EPSILON, id="customer").gaps[0] != pytest.approx(answer.gaps[0], abs=1e-3)


@pytest.mark.check
def test_a_repeat_is_free_until_a_row_has_changed(tmp_path: Path) -> None:
    deployment = laid_out(tmp_path)
    table = tmp_path / "good" / "0.parquet"
    asked = {"metric": "sp", "epsilon": EPSILON, "id": "customer", "request_id": "r"}
    with deployment.served(), deployment.client("alice") as audits, duckdb.connect() as engine:
        first = audits.ask_table("good", **asked)
        engine.execute(_COPY.format(f"SELECT * FROM '{table}' ORDER BY m2, customer", table))
        again = audits.ask_table("good", **asked)
        assert again.gaps.tobytes() == first.gaps.tobytes()
        assert again.epsilon_remaining == first.epsilon_remaining
        assert refused(audits, "good", request_id="r", models=["m0", "m2", "m1"]) == "REQUEST_ID_REUSED"
        # Sums stay what they were, by label and group too.
        engine.execute(_COPY.format(f"SELECT * REPLACE (m0 <> (customer IN (0, 4)) AS m0) FROM '{table}'", table))
        assert refused(audits, "good", request_id="r") == "REQUEST_ID_REUSED"


@pytest.mark.check
def test_the_page_s_policy_and_question_are_answered(tmp_path: Path) -> None:
    deployment = laid_out(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "tables.md").read_text()
    policy, asked = re.findall(r"```(?:toml|python)\n(.*?)```", page, re.DOTALL)
    served = tomllib.loads((tmp_path / "policy.toml").read_text()) | tomllib.loads(policy)
    served["data"]["minimum_group"] = 5
    served["audit"]["epsilon_min"] = 1e-6
    (tmp_path / "policy.toml").write_text(tomli_w.dumps(served))
    (tmp_path / "good").rename(tmp_path / "scores_v3")
    asked = asked.replace("127.0.0.1:7443", deployment.address).replace("certificates/", f"{tmp_path}/certificates/")
    with deployment.served():
        done = forked_programs.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.count("[") == 3


def test_a_table_of_other_rows_or_of_no_predictions_is_refused(deployment: Deployment, audits: AuditClient) -> None:
    assert {table: refused(audits, table) for table in BAD} == {table: REASONS[table] for table in BAD}
    assert "no longer who they were" not in deployment.log  # which would be told by digests that anybody can forge


OF_NOTHING: tuple[tuple[dict[str, Any], str], ...] = (
    ({"id": "person"}, "COLUMN_UNKNOWN"),
    ({"models": ["m0", "group"]}, "COLUMN_UNKNOWN"),
    ({"models": ["repaid"]}, "COLUMN_UNKNOWN"),
    ({"models": ["m0", "m0"]}, "COLUMN_UNKNOWN"),
    ({"models": ["customer"]}, "COLUMN_UNKNOWN"),
    ({"models": ['m0"; DROP TABLE people; --']}, "COLUMN_UNKNOWN"),
    ({"id": 'customer" FROM people; --'}, "COLUMN_UNKNOWN"),
    ({"table": 'good"; DROP TABLE people; --'}, "TABLE_UNKNOWN"),
    ({"table": "people/0.parquet"}, "TABLE_UNKNOWN"),
    ({"table": "wide"}, "QUERIES_OUT_OF_RANGE"),
    ({"table": "bare"}, "QUERIES_OUT_OF_RANGE"),
    ({"table": "texts"}, "COLUMN_UNKNOWN"),
)


def test_names_that_the_table_or_the_policy_does_not_have_are_refused(audits: AuditClient) -> None:
    for asked, reason in OF_NOTHING:
        assert refused(audits, **({"table": "good"} | asked)) == reason, asked


@pytest.mark.check  # what ppv is worth takes a service ten seconds to find out
def test_scores_are_refused_where_decisions_are_needed(tmp_path: Path) -> None:
    deployment = laid_out(tmp_path, **{'["sp", "eo", "oad"]': '["sp", "eodds_max", "ppv"]'})
    with deployment.served(), deployment.client("alice") as audits:
        assert refused(audits, "good", metric="ppv") == "PREDICTIONS_NOT_BINARY"
        assert len(audits.ask_table("good", "ppv", EPSILON, id="customer", models=["m0", "m1"]).gaps) == 2


def test_a_table_is_for_its_developers_and_predictions_are_not_sent(
    deployment: Deployment, audits: AuditClient
) -> None:
    with deployment.client("bob") as bob:
        assert refused(bob, "good") == "TABLE_UNKNOWN"
    with pytest.raises(AuditRefused) as caught:
        audits.ask(np.zeros(PEOPLE), "sp", EPSILON)
    assert caught.value.reason == "TABLE_NEEDED"


@pytest.mark.check
def test_a_table_that_is_gone_is_refused_and_the_log_says_which(tmp_path: Path) -> None:
    deployment = laid_out(tmp_path)
    with deployment.served(), deployment.client("alice") as audits:
        (tmp_path / "good" / "0.parquet").rename(tmp_path / "good" / "0")
        assert refused(audits, "good") == "TABLE_UNAVAILABLE"
        assert "table good: " in deployment.log


@pytest.mark.check
def test_people_who_change_are_not_audited_until_the_service_starts_again(tmp_path: Path) -> None:
    deployment = laid_out(tmp_path)
    with deployment.served(), deployment.client("alice") as audits:
        half = tmp_path / "people" / "0.parquet"
        with duckdb.connect() as engine:
            engine.execute(
                _COPY.format(f"SELECT * REPLACE (if(customer = 8, 'b', \"group\") AS \"group\") FROM '{half}'", half)
            )
        assert refused(audits, "good") == "ROWS_DIFFER"
        assert "people are no longer who they were" in deployment.log


ONE_LINE = {
    "no id": ({'\nid = "customer"': ""}, "data.id"),
    "no file": ({"people/*": "nobody/*"}, "data.source"),
    "another id": ({'id = "customer"': 'id = "person"'}, "no column 'person'"),
    "groups": ({'id = "customer"': 'id = "customer"\ngroups = { sex = ["f", "m"] }'}, "data.groups"),
    "recommended": ({'"counts"': '"recommended"'}, "audit.mechanism"),
    "no such developer": ({'["alice"]': '["carol"]'}, "carol"),
    "no such table": ({"parquet:good": "parquet:none"}, "tables.good"),
    "no database": ({'source = "parquet:good/*.parquet"': 'table = "good"'}, "tables.good.table"),
    "protected": ({"parquet:good/*": "parquet:people/*"}, "tables.good: it has group"),
    "small groups": ({"minimum_group = 5": "minimum_group = 40"}, "data.minimum_group"),
    "a password": ({"parquet:people/*.parquet": "postgresql://me:secret@127.0.0.1:1/bank"}, "passfile"),
    "no server": (
        {"parquet:people/*.parquet": "postgresql://me@127.0.0.1:1/bank"}
        | {f'source = "parquet:{name}/*.parquet"': 'table = "good"' for name in TABLES}
        | {'id = "customer"': 'id = "customer"\ntable = "people"'},
        "data.source: postgresql://127.0.0.1:1/bank: ",
    ),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("wrong", ONE_LINE)
def test_a_policy_that_cannot_be_served_is_one_line(tmp_path: Path, wrong: str) -> None:
    changed, told = ONE_LINE[wrong]
    deployment = laid_out(tmp_path)
    policy = tmp_path / "policy.toml"
    text = policy.read_text()
    for old, new in changed.items():
        assert old in text
        text = text.replace(old, new)
    policy.write_text(text)
    with deployment.started() as process:
        assert process.wait(300) == 2
    *_, line = deployment.log.splitlines()
    assert told in line
    assert "secret" not in line


@pytest.mark.check
@pytest.mark.parametrize("ids", ["nullif(customer, 3)", "least(customer, 28)"])
def test_people_without_ids_of_their_own_are_refused(tmp_path: Path, ids: str) -> None:
    deployment = laid_out(tmp_path)
    half = tmp_path / "people" / "0.parquet"
    with duckdb.connect() as engine:
        engine.execute(_COPY.format(f"SELECT * REPLACE ({ids} AS customer) FROM '{half}'", half))
    with deployment.started() as process:
        assert process.wait(300) == 2
    assert "column 'customer': a row has no id, or that of another" in deployment.log


@pytest.mark.check
@pytest.mark.parametrize("other", ["a database", "a file"])
def test_the_same_people_have_no_second_budget(tmp_path: Path, other: str) -> None:
    """Under another name, from somewhere else and with another protected column."""
    deployment = laid_out(tmp_path)
    with deployment.served():
        pass
    policy = tmp_path / "policy.toml"
    text = policy.read_text().replace("[data]", '[data]\nname = "others"')
    if other == "a database":
        text = text.replace("parquet:people/*.parquet", "duckdb:bank.duckdb").replace(
            "\nid =", '\ntable = "people"\nid ='
        )
        told = "who is in which group is the same"
    else:
        half = tmp_path / "people" / "0.parquet"
        text = (
            text.partition("[tables")[0].replace("parquet:people/*.parquet", str(half)).replace('"group"', '"repaid"')
        )
        text = (
            text.replace('label = "repaid"', 'label = "group"')
            .replace('"1"', '"a"')
            .replace('"a"\nlabel', '"1"\nlabel')
        )
        told = "30 of their ids are in both"
    policy.write_text(text)
    with deployment.started() as process:
        assert process.wait(300) == 2
    assert told in deployment.log.splitlines()[-1]


@pytest.mark.check
def test_a_check_tells_what_answers_are_worth(tmp_path: Path) -> None:
    laid_out(tmp_path)
    command = [sys.executable, "-m", "sim", "deploy", "check", "--policy", str(tmp_path / "policy.toml")]
    done = forked_programs.run(command, capture_output=True, text=True, check=True)
    assert "95% interval" in done.stdout + done.stderr


@pytest.mark.check
def test_a_database_s_people_are_audited_there(tmp_path: Path) -> None:
    psycopg = pytest.importorskip("psycopg")
    server = postgres_server.begin()
    try:
        passfile = tmp_path / "passfile"
        url = f"{server.url()}&passfile={passfile}"
        with psycopg.connect(server.url(), autocommit=True) as database:
            database.execute("CREATE SCHEMA bank")
            database.execute(
                "CREATE TABLE bank.people AS SELECT i AS customer, substr('ab', i % 2 + 1, 1) AS \"group\", "
                "i / 2 % 2 AS repaid FROM generate_series(0, 59) i"
            )
            database.execute(
                "CREATE TABLE bank.good AS SELECT (i * 7) % 60 AS customer, (i % 5 = 0) AS m0, "
                "(i % 4 = 0)::int::smallint AS m1, (i % 11) / 10.0 AS m2 FROM generate_series(0, 59) i"
            )
            for name, changed in {
                "twice": "UPDATE {} SET customer = 4 WHERE customer = 3",
                "missing": "DELETE FROM {} WHERE customer = 3",
                "nulls": "UPDATE {} SET m0 = NULL WHERE customer = 3",
                "nans": "UPDATE {} SET m2 = 'NaN' WHERE customer = 3",
                "large": "UPDATE {} SET m2 = 1.1 WHERE customer = 3",
            }.items():
                database.execute(f"CREATE TABLE bank.{name} AS SELECT * FROM bank.good")
                database.execute(changed.format(f"bank.{name}"))
            database.execute("ALTER USER fairwall PASSWORD 'right'")
        (server.data / "pg_hba.conf").write_text("local all all scram-sha-256\n")
        server.run("pg_ctl", "reload", "-D", str(server.data))
        passfile.write_text("*:*:*:*:wrong-s3cret\n")
        passfile.chmod(0o600)
        tables = {f'source = "parquet:{name}/*.parquet"': f'table = "bank.{name}"' for name in TABLES}
        deployment = laid_out(tmp_path, url, **tables)
        policy = tmp_path / "policy.toml"
        text = policy.read_text().replace('\nid = "customer"', '\nid = "customer"\ntable = "bank.people"')
        for name in ("unknown", "infinite", "negative", *OTHER):
            text = text.replace(f"bank.{name}", "bank.good")
        policy.write_text(text)
        with deployment.started() as process:
            assert process.wait(300) == 2
        assert "password authentication failed" in deployment.log
        assert "s3cret" not in deployment.log
        passfile.write_text("*:*:*:*:right\n")
        with deployment.served(), deployment.client("alice") as audits:
            answer = audits.ask_table("good", "sp", EPSILON, id="customer")
            assert answer.gaps == pytest.approx([gap(scores, np.full(PEOPLE, True)) for scores in SCORES], abs=1e-4)
            for name in ("twice", "missing", "nulls", "nans", "large"):
                assert refused(audits, name) == REASONS[name]
            assert refused(audits, "good", models=['m0"; DROP TABLE bank.people; --']) == "COLUMN_UNKNOWN"
            server.stop()
            assert refused(audits, "good") == "TABLE_UNAVAILABLE"
        assert "s3cret" not in deployment.log
        assert "right" not in deployment.log
    finally:
        postgres_server.remove(server)
