"""Rows with ids: whatever order they come in, the answer is that of the right people, or there is none."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from fairwall.client import AuditClient, AuditRefused, AuditUnavailable, RowsNotCompared, audit_client, gaps, rows
from fairwall.rpc import channel, identity
from fairwall.wire.rows import digest_of, ids_of, order_of
from tests.support.loans_deployment import Deployment
from tests.unit.fairwall.test_what_values_mean import FORMS

EPSILON = 2.0**20
CLOSE = 2e-5
"""Twenty times the noise's scale, which an answer exceeds once in e**20 times; a person's share of a gap is 1/40."""

_RNG = np.random.default_rng(20)
_PEOPLE = 40
TABLE = pd.DataFrame(
    {
        "person": _RNG.permutation([*range(7, 27), *(f"x{number}" for number in range(20))]),
        "group": [*"ab"] * (_PEOPLE // 2),
        "income": _RNG.normal(30, 9, _PEOPLE).round(1),
        "repaid": _RNG.integers(0, 2, _PEOPLE),
    }
).astype({"person": object})
OWN = TABLE.drop(columns="group")
"""What a developer has: the same rows without the protected column."""

SCORES = pd.DataFrame(_RNG.random((_PEOPLE, 2)), index=pd.Index(OWN["person"]), columns=["m1", "m2"])
A, B = (TABLE["group"] == group for group in "ab")
GAPS = SCORES[A.to_numpy()].mean().to_numpy() - SCORES[B.to_numpy()].mean().to_numpy()


def with_ids(folder: Path, table: pd.DataFrame = TABLE, keys: str = 'id = "person"\npublic = ["income"]') -> Deployment:
    """A deployment of a table, before it is started."""
    deployment = Deployment(folder)
    table.to_csv(folder / "people.csv", index=False)
    deployment.set_budget(2.0**40)
    policy = folder / "policy.toml"
    text = policy.read_text().replace('label = "repaid"', f'label = "repaid"\n{keys}')
    policy.write_text(text.replace("queries_max = 1", "queries_max = 4"))
    return deployment


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    made = with_ids(tmp_path_factory.mktemp("rows"))
    with made.served():
        yield made


@pytest.fixture
def audits(deployment: Deployment) -> Iterator[AuditClient]:
    with deployment.client("alice") as connected:
        yield connected


Ask = Callable[[AuditClient, pd.DataFrame, pd.DataFrame], Any]
"""Ask about scores, labelled with ids, that were made from a table in the same order."""

WAYS: dict[str, Ask] = {
    "ids beside an array": lambda audits, scores, _: audits.ask(
        scores.to_numpy().T, "sp", EPSILON, ids=scores.index.tolist()
    ),
    "ids as an array": lambda audits, scores, _: audits.ask(
        scores.to_numpy().T, "sp", EPSILON, ids=scores.index.to_numpy()
    ),
    "a frame": lambda audits, scores, _: audits.ask(scores, "sp", EPSILON),
    "a frame, turned over": lambda audits, scores, _: audits.ask(scores.T, "sp", EPSILON),
    "a table": lambda audits, scores, table: audits.ask(scores.to_numpy().T, "sp", EPSILON, table=table),
    "an Arrow table": lambda audits, scores, table: audits.ask(
        scores.to_numpy().T, "sp", EPSILON, table=pa.Table.from_pandas(table.astype({"person": str}))
    ),
    "columns": lambda audits, scores, table: audits.ask(
        scores.to_numpy().T, "sp", EPSILON, table={name: table[name].tolist() for name in table}
    ),
}


def answered(call: Callable[[], Any]) -> np.ndarray | None:
    """The gaps; None where there is no answer."""
    try:
        return np.asarray(call().gaps)
    except (AuditRefused, ValueError):
        return None


def stale(table: pd.DataFrame, scores: pd.DataFrame, rng: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Lose a row, double one, or have somebody else's: with other ids than the service's."""
    row = int(rng.integers(len(table)))
    match rng.integers(4):
        case 0:
            kept = np.delete(np.arange(len(table)), row)
        case 1:
            kept = np.append(np.arange(len(table)), row)
        case 2:
            kept = np.where(np.arange(len(table)) == row, (row + 1) % len(table), np.arange(len(table)))
        case _:
            other = table.assign(person=table["person"].where(np.arange(len(table)) != row, "somebody"))
            return other, scores.set_axis(other["person"], axis=0)
    return table.iloc[kept], scores.iloc[kept]


def wrong_answers(audits: AuditClient, permutations: int) -> tuple[int, int]:
    """Try permutations of rows in each way by turns, each tenth with stale ids: how many are answered, and wrongly."""
    rng = np.random.default_rng(7)
    count = wrong = 0
    for number in range(permutations):
        order = rng.permutation(_PEOPLE)
        table, scores = OWN.iloc[order], SCORES.iloc[order]
        if number % 10 == 9:
            table, scores = stale(table, scores, rng)
        gaps = answered(lambda table=table, scores=scores: [*WAYS.values()][number % len(WAYS)](audits, scores, table))  # type: ignore[misc]  # noqa: B023
        count += gaps is not None
        wrong += gaps is not None and not np.allclose(gaps, GAPS, atol=CLOSE)
    return count, wrong


@pytest.mark.check
def test_a_thousand_permutations_get_the_same_answer_or_none(audits: AuditClient) -> None:
    assert wrong_answers(audits, 1000) == (900, 0)


def test_a_client_that_keeps_the_order_would_be_found(audits: AuditClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsorted(predictions: Any, ids: Any, table: Any, known: rows.KnownRows) -> tuple[Any, bytes]:
        _, digest = arranged(predictions, ids, table, known)
        values = np.asarray(predictions)
        return (values if values.shape[1] == _PEOPLE else values.T), digest

    arranged = rows.arranged
    monkeypatch.setattr(audit_client.rows, "arranged", unsorted)
    count, wrong = wrong_answers(audits, 20)
    assert (count, wrong) == (18, 18)


def test_one_request_in_any_order_is_charged_once(audits: AuditClient) -> None:
    before = audits.terms().epsilon_remaining
    answers = {
        audits.ask(SCORES.sample(frac=1, random_state=seed), "sp", 1.0, request_id="once").gaps.tobytes()
        for seed in range(20)
    }
    assert len(answers) == 1
    assert audits.terms().epsilon_remaining == before - 1
    other = SCORES.sample(frac=1, random_state=1).set_axis(SCORES.index, axis=0)
    with pytest.raises(AuditRefused, match="used before for another request"):
        audits.ask(other, "sp", 1.0, request_id="once")


def with_income(table: pd.DataFrame, row: int, income: float) -> pd.DataFrame:
    return table.assign(income=table["income"].where(np.arange(len(table)) != row, income))


def swapped(table: pd.DataFrame) -> pd.DataFrame:
    ids = table["person"].tolist()
    return table.assign(person=[ids[1], ids[0], *ids[2:]])


STALE: dict[str, tuple[pd.DataFrame, str]] = {
    "a value changed": (with_income(OWN, 3, 1.25), "its 'income' are others for some rows"),
    "a value lost": (with_income(OWN, 3, float("nan")), "its 'income' are others for some rows"),
    "two ids swapped": (swapped(OWN), "its 'income' are others for some rows"),
    "a row is missing": (OWN.iloc[1:], "39 are given, and the service has 40"),
    "a row more": (pd.concat([OWN, OWN.iloc[:1].assign(person="new")]), "41 are given, and the service has 40"),
    "a row twice": (pd.concat([OWN, OWN.iloc[:1]]), "row 41 has the id of row 1"),
    "no id": (OWN.assign(person=OWN["person"].where(np.arange(_PEOPLE) != 4)), "row 5 has no id"),
    "no column of ids": (OWN.drop(columns="person"), "table: no column 'person'"),
    "no public column": (OWN.drop(columns="income"), "table: no column 'income'"),
}


def test_a_stale_table_is_not_asked_about(audits: AuditClient) -> None:
    before = audits.terms()
    for what, (table, why) in STALE.items():
        with pytest.raises(ValueError, match=why) as caught:
            audits.ask(np.full(len(table), 0.5), "sp", 1.0, table=table)
        named = [person for person in OWN["person"] if str(person).startswith("x") and str(person) in str(caught.value)]
        assert not named, what
    assert audits.terms() == before


def test_what_labels_do_not_fit_is_not_asked(audits: AuditClient) -> None:
    for scores in (SCORES.iloc[1:], SCORES["m1"].rename({"x3": "y3"}), SCORES.reset_index(drop=True).T):
        with pytest.raises(ValueError, match=r"neither rows nor columns .* pass predictions\.to_numpy\(\)"):
            audits.ask(scores, "sp", 1.0)
    with pytest.raises(ValueError, match="40 ids are not one for each prediction"):
        audits.ask(SCORES.to_numpy(), "sp", 1.0, ids=SCORES.index)
    with pytest.raises(ValueError, match="ids and table contradict each other, the same in another order: row 1 "):
        audits.ask(SCORES["m1"].to_numpy(), "sp", 1.0, ids=SCORES.index[::-1], table=OWN)


def test_without_ids_the_order_of_the_file_is_trusted_and_said_so_once(audits: AuditClient) -> None:
    with pytest.warns(RowsNotCompared, match="the order of rows is trusted"):
        answer = audits.ask(SCORES.to_numpy().T, "sp", EPSILON)
    assert answer.rows_compared is False
    assert answer.gaps == pytest.approx(GAPS, abs=CLOSE)
    again = audits.ask(SCORES.reset_index(drop=True)["m1"], "sp", EPSILON)  # labels that only count
    assert again.gaps == pytest.approx(GAPS[:1], abs=CLOSE)


def test_the_terms_tell_how_rows_are_known(audits: AuditClient) -> None:
    known = audits.terms().rows
    assert known is not None
    assert (known.id_column, known.public_columns) == ("person", ("income",))
    ids = ids_of(OWN["person"])
    assert known.ids_digest == digest_of(ids, order_of(ids))
    assert known.table_digest == digest_of(ids, order_of(ids), {"income": OWN["income"].tolist()})


def by_wire(deployment: Deployment, digest: bytes, people: int = _PEOPLE) -> gaps.Answer:
    """Ask without the client's own look at ids."""
    own = identity.load(deployment.folder / "certificates" / "developer-bob")
    with channel.connect(deployment.address, "compliance", own) as connection:
        predictions = np.full((1, people), 0.5)
        return gaps.ask(gaps.Audits(connection), "loans", "by-wire", "sp", predictions, 1.0, rows_digest=digest)


def test_other_rows_are_refused_by_the_service_and_cost_nothing(deployment: Deployment) -> None:
    with deployment.client("bob") as audits:
        before = audits.terms()
        for digest in (b"\0" * 32, before.rows.ids_digest[:-1], before.rows.ids_digest + b"\0"):  # type: ignore[union-attr]
            with pytest.raises(grpc.RpcError) as caught:
                by_wire(deployment, digest)
            assert audit_client.reason_of(caught.value) == audit_client.Reason.REASON_ROWS_DIFFER
            assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert audits.terms() == before


@pytest.mark.check
def test_rows_without_ids_are_compared_with_none(tmp_path: Path) -> None:
    deployment = with_ids(tmp_path, keys="")
    with deployment.served(), deployment.client("alice") as audits:
        assert audits.terms().rows is None
        for given in ({"ids": OWN["person"]}, {"table": OWN}):
            with pytest.raises(ValueError, match="this service's rows have no ids"):
                audits.ask(SCORES["m1"], "sp", 1.0, **given)
        with pytest.raises(grpc.RpcError) as caught:
            by_wire(deployment, b"\1" * 32)
        assert audit_client.reason_of(caught.value) == audit_client.Reason.REASON_ROWS_DIFFER
        answer = audits.ask(SCORES.T, "sp", EPSILON)  # whose labels say nothing here
        assert answer.rows_compared is None
        assert answer.gaps == pytest.approx(GAPS, abs=CLOSE)


def test_a_service_that_breaks_its_word_gives_no_answer(audits: AuditClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of an earlier version takes no notice of the digest, nor of the order that goes with it."""

    def earlier(*arguments: Any, rows_digest: bytes, **others: Any) -> gaps.Answer:
        return ask(*arguments, **others)

    ask = gaps.ask
    monkeypatch.setattr(gaps, "ask", earlier)
    with pytest.raises(AuditUnavailable, match="it did not compare rows"):
        audits.ask(SCORES, "sp", EPSILON)


def test_a_table_that_is_read_again_is_the_one_that_rows_are_compared_with(tmp_path: Path) -> None:
    deployment = with_ids(tmp_path)
    renewed = with_income(TABLE, 3, 1.25)
    with deployment.served() as process, deployment.client("alice") as audits:
        audits.ask(SCORES["m1"], "sp", 1.0, ids=OWN["person"])
        audits.ask(SCORES["m1"].to_numpy(), "sp", 1.0, table=OWN)
        renewed.to_csv(tmp_path / "people.csv", index=False)
        process.send_signal(signal.SIGHUP)
        while "SIGHUP: loans" not in deployment.log:
            time.sleep(0.05)
        with pytest.raises(ValueError, match="its 'income' are others"):
            audits.ask(SCORES["m1"].to_numpy(), "sp", 1.0, table=OWN)
        answer = audits.ask(SCORES["m1"].to_numpy(), "sp", EPSILON, table=renewed.sort_values("income"))
        assert answer.rows_compared


def test_who_has_no_label_is_left_out_of_the_answers_and_not_of_the_predictions(tmp_path: Path) -> None:
    lacking = np.arange(_PEOPLE) % 10 == 3
    table = TABLE.assign(repaid=TABLE["repaid"].astype("Int64").where(~lacking))
    deployment = with_ids(tmp_path, table, 'id = "person"\nmissing = "drop"')
    known = SCORES[~lacking]
    groups = table["group"][~lacking].to_numpy()
    gaps = known[groups == "a"].mean() - known[groups == "b"].mean()
    with deployment.served(), deployment.client("alice") as audits:
        assert audits.terms().people == _PEOPLE
        for seed in range(3):
            answer = audits.ask(SCORES.sample(frac=1, random_state=seed), "sp", EPSILON)
            assert answer.gaps == pytest.approx(gaps.to_numpy(), abs=CLOSE)
        with pytest.warns(RowsNotCompared):
            assert audits.ask(SCORES.to_numpy().T, "sp", EPSILON).gaps == pytest.approx(gaps.to_numpy(), abs=CLOSE)


@pytest.mark.check
def test_nobody_needs_pandas(deployment: Deployment) -> None:
    program = f"""
import sys
sys.modules["pandas"] = None
from fairwall.client import AuditClient
with AuditClient({deployment.address!r}, {str(deployment.folder / "certificates" / "developer-alice")!r}) as audits:
    print(audits.ask({SCORES["m1"].tolist()}, "sp", {EPSILON}, ids={OWN["person"].tolist()}).gaps[0])
"""
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    assert float(printed.stdout) == pytest.approx(GAPS[0], abs=CLOSE)


_ONES, _ZEROS = ("1", " 1", "1.0", "+1", "1e0"), ("0", "0.0", "-0", "0e0", "0 ")


@pytest.mark.check
@pytest.mark.parametrize("write", FORMS, ids=lambda write: write.__qualname__)
def test_a_table_gets_the_same_answer_in_every_form(write: Callable[[Path, Any], Path], tmp_path: Path) -> None:
    bits = _RNG.integers(0, 2, (2, 60))
    spelt = [tuple((_ZEROS, _ONES)[bit][place % 5] for bit in pair) for place, pair in enumerate(bits.T)]
    deployment = Deployment(tmp_path)
    deployment.set_budget(2.0**40)
    policy = tmp_path / "policy.toml"
    text = policy.read_text()
    for old, new in {
        "people.csv": write(tmp_path / "table", spelt).name,
        '"group"': '"g"',
        '"repaid"': '"y"',
        'advantaged = "a"': 'advantaged = "1"',
        '["sp"]': '["sp", "eo"]',
    }.items():
        assert old in text
        text = text.replace(old, new)
    policy.write_text(text)
    scores, (group, label) = np.linspace(0, 1, 60), bits.astype(bool)
    with deployment.served(), deployment.client("alice") as audits:
        for metric, who in {"sp": np.ones(60, bool), "eo": label}.items():
            answer = audits.ask(scores, metric, EPSILON)
            gap = scores[who & group].mean() - scores[who & ~group].mean()
            assert answer.gaps[0] == pytest.approx(gap, abs=CLOSE)
