"""Counts by group of rows with ids: whatever order they come in, all are in their own groups, or nothing is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pandas as pd
import pytest

from fairwall.client import (
    AuditClient,
    AuditRefused,
    AuditUnavailable,
    RowsNotCompared,
    audit_client,
    by_group,
)
from fairwall.client.by_group import ByGroup
from fairwall.rpc import channel, identity
from fairwall.rpc.arrays import from_message
from fairwall.tools.asynchronous import AsyncAuditClient
from tests.e2e.test_rows import EPSILON, OWN, STALE, TABLE, stale, with_ids
from tests.support.loans_deployment import Deployment

GROUPS = '[data.groups]\nkind = ["x", "y", "z", "unknown"]\ngroup = ["a", "b", "unknown"]\n'
PEOPLE = len(TABLE)
KINDS = np.array([None, "x", "y", "z"], object)[np.arange(PEOPLE) % 7 % 4]
WHOLE = TABLE.assign(kind=KINDS)
DECISIONS = pd.Series((np.arange(PEOPLE) * 7 % 10 > 4).astype(float), pd.Index(OWN["person"]))
MEASURES = ("selection_rate", "true_positive_rate", "accuracy")


def grouped(folder: Path, table: pd.DataFrame, keys: str) -> Deployment:
    """A deployment of a table with groups, before it is started."""
    deployment = with_ids(folder, table, keys)
    policy = folder / "policy.toml"
    text = policy.read_text().replace('metrics = ["sp"]', 'metrics = ["sp", "eo", "oad"]')
    # So little noise is bought that an answer is known from another one: no limit to what is given away adds to it.
    policy.write_text(text.replace("[audit]", GROUPS + "[audit]\nreveal_max = 1"))
    return deployment


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    made = grouped(tmp_path_factory.mktemp("groups"), WHOLE, 'id = "person"\npublic = ["income"]')
    with made.served():
        yield made


@pytest.fixture
def audits(deployment: Deployment) -> Iterator[AuditClient]:
    with deployment.client("alice") as connected:
        yield connected


Ask = Callable[[AuditClient, pd.Series, pd.DataFrame], ByGroup]


def counted(audits: AuditClient, decisions: Any, **how: Any) -> ByGroup:
    return audits.count_by_group(decisions, ("kind", "group"), EPSILON, measures=MEASURES, **how)


WAYS: dict[str, Ask] = {
    "ids": lambda audits, decisions, _: counted(audits, decisions.to_numpy(), ids=decisions.index),
    "a series": lambda audits, decisions, _: counted(audits, decisions),
    "a frame": lambda audits, decisions, _: counted(audits, decisions.to_frame()),
    "a table": lambda audits, decisions, table: counted(audits, decisions.to_numpy(), table=table),
}


def exact(table: pd.DataFrame, decisions: pd.Series) -> pd.DataFrame:
    """The rates by group, from the table that compliance has: without a label, nobody is asked about theirs."""
    given = table.fillna({"kind": "unknown", "group": "unknown"}).assign(chosen=decisions.to_numpy())
    given["right"] = (given["chosen"] == given["repaid"]).where(given["repaid"].notna())
    of = given.groupby(["kind", "group"])
    rates = {
        "people": of.size(),
        "selection_rate": of["chosen"].mean(),
        "true_positive_rate": given[given["repaid"] == 1].groupby(["kind", "group"])["chosen"].mean(),
        "accuracy": of["right"].apply(lambda each: each.dropna().astype(float).mean()),
    }
    return pd.DataFrame(rates)


def is_right(bought: ByGroup, table: pd.DataFrame, decisions: pd.Series) -> bool:
    expected = exact(table, decisions)
    told = bought.frame().loc[expected.index, expected.columns]
    known = expected.notna()  # a rate among nobody is told as that of everybody
    return bool(told["people"].sum() == PEOPLE and np.allclose(told[known].fillna(0), expected.fillna(0), atol=1e-9))


def answers(audits: AuditClient, permutations: int) -> tuple[int, int]:
    """Try permutations of rows in each way by turns, each fifth with stale ids: how many are answered, and wrongly."""
    rng = np.random.default_rng(8)
    count = wrong = 0
    for number in range(permutations):
        order = rng.permutation(PEOPLE)
        table, decisions = OWN.iloc[order], DECISIONS.iloc[order]
        if number % 5 == 4:
            table, frame = stale(table, decisions.to_frame(), rng)
            decisions = frame[0]
        try:
            bought = [*WAYS.values()][number % len(WAYS)](audits, decisions, table)
        except (AuditRefused, ValueError):
            continue
        count += 1
        wrong += not is_right(bought, WHOLE, DECISIONS)
    return count, wrong


@pytest.mark.check
def test_permutations_get_the_same_answer_or_none(audits: AuditClient) -> None:
    assert answers(audits, 50) == (40, 0)


@pytest.mark.check
def test_a_client_that_keeps_the_order_would_be_found(audits: AuditClient, monkeypatch: pytest.MonkeyPatch) -> None:
    arranged = audit_client.rows.arranged

    def unsorted(predictions: Any, ids: Any, table: Any, known: Any) -> tuple[Any, bytes]:
        return np.asarray(predictions).reshape(1, -1), arranged(predictions, ids, table, known)[1]

    monkeypatch.setattr(audit_client.rows, "arranged", unsorted)
    assert answers(audits, 10) == (8, 8)


def test_one_question_in_any_order_is_charged_once(audits: AuditClient) -> None:
    before = audits.terms().epsilon_remaining
    for how in ({"request_id": "in-any-order"}, {"once": True}):
        before -= 1.0
        for seed in range(4):
            shuffled = DECISIONS.sample(frac=1, random_state=seed)
            bought = audits.count_by_group(shuffled, "kind", 1.0, **how)
            assert bought.epsilon_remaining_now == before
    with pytest.raises(AuditRefused, match="used before for another request"):
        audits.count_by_group(1 - DECISIONS, "kind", 1.0, request_id="in-any-order")
    assert audits.count_by_group(1 - DECISIONS, "kind", 1.0, once=True).epsilon_remaining == before - 1
    with pytest.raises(ValueError, match="leave request_id out"):
        audits.by_group(DECISIONS, "kind", 1.0, once=True, request_id="a")


def test_a_stale_table_is_not_asked_about(audits: AuditClient) -> None:
    before = audits.terms()
    for table, why in STALE.values():
        with pytest.raises(ValueError, match=why):
            audits.by_group(np.ones(len(table)), "kind", 1.0, table=table)
    assert audits.terms() == before


def test_without_ids_the_order_of_the_file_is_trusted_and_said_so(audits: AuditClient) -> None:
    with pytest.warns(RowsNotCompared, match="the order of rows is trusted"):
        bought = counted(audits, DECISIONS.to_numpy())
    assert bought.rows_compared is False
    assert is_right(bought, WHOLE, DECISIONS)


def test_a_service_that_takes_no_notice_of_ids_gives_no_answer(
    audits: AuditClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def earlier(*arguments: Any, rows_digest: bytes, **others: Any) -> ByGroup:
        return count(*arguments, **others)

    count = by_group.count
    monkeypatch.setattr(by_group, "count", earlier)
    with pytest.raises(AuditUnavailable, match="it did not compare rows"):
        counted(audits, DECISIONS)


def test_other_rows_are_refused_by_the_service_and_cost_nothing(deployment: Deployment, audits: AuditClient) -> None:
    before = audits.terms()
    own = identity.load(deployment.folder / "certificates" / "developer-alice")
    with channel.connect(deployment.address, "compliance", own) as connection:
        for digest in (bytes(32), before.rows.ids_digest[:-1]):  # type: ignore[union-attr]
            with pytest.raises(grpc.RpcError) as caught:
                by_group.count(
                    by_group.GroupStub(connection), "loans", "by-wire", np.ones((1, PEOPLE)), ("kind",),
                    ("selection_rate",), 1.0, rows_digest=digest,
                )  # fmt: skip
            assert audit_client.reason_of(caught.value) == audit_client.Reason.REASON_ROWS_DIFFER
    assert audits.terms() == before


@pytest.mark.check
def test_whom_audits_leave_out_is_counted_all_the_same(tmp_path: Path) -> None:
    """Strata sum up to public totals exactly: to leave people out would tell who is left out, with no noise at all."""
    people = np.arange(PEOPLE)
    table = WHOLE.assign(repaid=WHOLE["repaid"].astype("Int64").where(~np.isin(people % 10, (3, 6))))
    deployment = grouped(tmp_path, table, 'id = "person"\nmissing = "drop"')
    with deployment.served(), deployment.client("alice") as audits:
        assert audits.terms().people == audits.group_terms().people == PEOPLE
        for seed in range(3):
            order = np.random.default_rng(seed).permutation(PEOPLE)
            for way in ("ids", "a series", "a frame"):
                bought = WAYS[way](audits, DECISIONS.iloc[order], OWN.iloc[order])
                assert is_right(bought, table, DECISIONS)
        for person in (3, 6):  # a stratum of one whom audits leave out, and of one whom they do not
            for one in (person, person + 1):
                (told,) = audits.count_by_group(
                    (people == one).astype(float), "kind", 1.0, ids=OWN["person"]
                ).release.tables
                assert sorted(from_message(told.counts).sum(axis=1)) == [1, PEOPLE - 1]


def test_asyncio_counts_by_group_too(deployment: Deployment, audits: AuditClient) -> None:
    async def ask() -> ByGroup:
        folder = deployment.folder / "certificates" / "developer-alice"
        async with AsyncAuditClient(deployment.address, folder) as waiting:
            return await waiting.count_by_group(DECISIONS, "kind", 1.0, request_id="asyncio")

    assert asyncio.run(ask()).release == audits.count_by_group(DECISIONS, "kind", 1.0, request_id="asyncio").release


def test_weights_are_refused_in_one_line(audits: AuditClient) -> None:
    before = audits.terms()
    for ask in (
        lambda **how: audits.by_group(DECISIONS, "kind", 1.0, **how),
        lambda **how: audits.count_by_group(DECISIONS, "kind", 1.0, **how),
        lambda **how: audits.ask(DECISIONS, "sp", 1.0, **how),
    ):
        with pytest.raises(ValueError, match=r"^sample_weight: everybody counts as one: .*largest weight$"):
            ask(sample_weight=np.ones(PEOPLE))
    assert audits.terms() == before


def test_quantiles_and_segments_follow_the_ids(audits: AuditClient) -> None:
    own = pd.DataFrame({"chosen": DECISIONS, "score": np.arange(PEOPLE) * 13.0 % 37, "place": np.arange(PEOPLE) % 2})
    kinds = WHOLE["kind"].fillna("unknown").to_numpy()
    of = own.assign(kind=kinds, high=own["score"] >= own["score"].median())
    mixed = own.sample(frac=1, random_state=1)
    within = audits.by_segment(mixed["chosen"], mixed["place"], "kind", EPSILON)
    rates = of.groupby([of["place"].astype(str), "kind"])["chosen"].mean()
    for record in within.records():
        assert record["selection_rate"] == pytest.approx(rates[record["segment"], record["kind"]], abs=1e-9)
    bands = audits.by_quantile(mixed["score"].to_numpy(), "kind", EPSILON, quantiles=2, ids=mixed.index)
    for record in bands.records():
        assert record["selection_rate"] == pytest.approx(of.groupby("kind")["high"].mean()[record["kind"]], abs=1e-9)
    with pytest.raises(ValueError, match="in another order"):
        audits.by_segment(mixed["chosen"], own["place"], "kind", EPSILON)
