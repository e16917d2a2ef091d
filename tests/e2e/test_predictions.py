"""Predictions out of whatever holds them: the same question however they are sent, and none that cannot be asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from fairwall.client import AuditClient, predictions, rows
from fairwall.client import audit_client as client
from fairwall.compliance.v1.audit_service_pb2 import AuditRequest
from fairwall.rpc import arrays
from fairwall.wire.audits import audit_digest
from fairwall.wire.v1 import array_pb2
from tests.e2e.test_group_rows import WHOLE, grouped
from tests.e2e.test_rows import CLOSE, EPSILON, OWN, SCORES, A, B
from tests.support.loans_deployment import Deployment

DECISIONS = pd.DataFrame({"m1": SCORES["m1"] > 0.5, "m2": SCORES["m2"] > 0.25}).astype("int8")
"""Labelled with ids, as scores are."""
SENT = {"decisions": DECISIONS, "scores": SCORES, "short scores": SCORES.astype("f4")}
TYPES = {
    "decisions": array_pb2.ELEMENT_TYPE_BIT,
    "scores": array_pb2.ELEMENT_TYPE_FLOAT64,
    "short scores": array_pb2.ELEMENT_TYPE_FLOAT32,
}
IDS = [str(person) for person in OWN["person"]]
BOTH = ("m1", "m2")


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    folder = tmp_path_factory.mktemp("predictions")
    made = grouped(folder, WHOLE, 'id = "person"\npublic = ["income"]')
    with made.served():
        yield made


@pytest.fixture
def audits(deployment: Deployment) -> Iterator[AuditClient]:
    with deployment.client("alice") as connected:
        yield connected


def on_disk(folder: Path, scores: pd.DataFrame) -> np.ndarray:
    path = folder / "scores.npy"
    np.save(path, scores.to_numpy().T)
    return np.load(path, mmap_mode="r")


def as_file(folder: Path, table: pd.DataFrame) -> Path:
    parquet.write_table(pa.Table.from_pandas(table, preserve_index=False), folder / "scores.parquet", row_group_size=7)
    return folder / "scores.parquet"


def of_polars(table: pd.DataFrame) -> Any:
    import polars

    return polars.DataFrame({name: table[name].to_numpy() for name in table})


def as_arrow(table: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(table, preserve_index=False)


WAYS: dict[str, Callable[[Path, pd.DataFrame], tuple[Any, Any]]] = {
    "a list": lambda _, table: (table[[*BOTH]].to_numpy().T.tolist(), table["person"].tolist()),
    "a memmap": lambda folder, table: (on_disk(folder, table[[*BOTH]]), pa.array(table["person"])),
    "a frame of pandas": lambda _, table: (table, "person"),
    "a frame of polars": lambda _, table: (of_polars(table), "person"),
    "an Arrow table": lambda _, table: (as_arrow(table), "person"),
    "an Arrow table, ids beside it": lambda _, table: (as_arrow(table[[*BOTH]]), table["person"].to_numpy(object)),
    "a file": lambda folder, table: (as_file(folder, table), "person"),
    "a file by its name": lambda folder, table: (str(as_file(folder, table)), "person"),
}


def held(way: str, folder: Path, scores: pd.DataFrame, seed: int) -> tuple[Any, Any]:
    """Hold scores and ids in some way, shuffled."""
    order = np.random.default_rng(seed).permutation(len(scores))
    own = scores.reset_index(drop=True).assign(person=IDS)[["m1", "person", "m2"]].iloc[order]
    return WAYS[way](folder, own)


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", SENT)
def test_however_predictions_are_held_they_are_one_question(audits: AuditClient, tmp_path: Path, kind: str) -> None:
    scores = SENT[kind]
    answers = [audits.ask(scores, "sp", EPSILON, once=True)]
    left = audits.terms().epsilon_remaining
    for seed, way in enumerate(WAYS):
        asked, ids = held(way, tmp_path, scores, seed)
        answers.append(audits.ask(asked, "sp", EPSILON, ids=ids, once=True))
    assert {answer.request_id for answer in answers} == {answers[0].request_id}
    assert {answer.gaps.tobytes() for answer in answers} == {answers[0].gaps.tobytes()}
    assert all(answer.rows_compared for answer in answers)
    assert audits.terms().epsilon_remaining == left
    values = scores.astype("f8")
    exact = values[A.to_numpy()].mean() - values[B.to_numpy()].mean()
    assert answers[0].gaps == pytest.approx(exact.to_numpy(), abs=CLOSE)


def test_counts_by_group_are_one_question_too(audits: AuditClient, tmp_path: Path) -> None:
    bought = []
    for way in ("a list", "a memmap", "an Arrow table", "a file", "a frame of pandas"):
        asked, ids = held(way, tmp_path, DECISIONS, 3)
        bought.append(audits.count_by_group(asked, "group", 1.0, ids=ids, once=True))
    assert {each.request_id for each in bought} == {bought[0].request_id}
    assert {each.release.SerializeToString() for each in bought} == {bought[0].release.SerializeToString()}
    assert (bought[0].measures, bought[0].models) == (("selection_rate",), 2)


@pytest.mark.parametrize(("kind", "at_once"), [*zip(SENT, (1, 50, 1 << 20), strict=False)])
def test_what_travels_is_the_least_type_and_the_digest_is_of_numbers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str, at_once: int
) -> None:
    monkeypatch.setattr(predictions, "_AT_ONCE", at_once)
    batch, ids = rows.opened(*held("a file", tmp_path, SENT[kind], 5))
    batch = client._batch(batch)
    assert predictions.announced(batch).element_type == TYPES[kind]
    header = client.gaps.header_of("loans", "", "sp", batch, 1.0, None, b"")
    whole = np.stack([pd.read_parquet(tmp_path / "scores.parquet")[name].to_numpy("f8") for name in BOTH])
    assert audit_digest(header, batch) == audit_digest(header, whole)
    for _ in range(2):  # a request may have to be sent again
        received = arrays.ArrivingArray(predictions.announced(batch))
        for message in predictions.encoded(batch, AuditRequest):
            received.append(AuditRequest.FromString(message).predictions_chunk)
        np.testing.assert_array_equal(received.finish().astype("f8"), whole)
    assert len(ids) == len(OWN)


def test_a_value_of_one_model_alone_decides_for_all() -> None:
    scores = np.zeros((3, 5))
    for value, expected in ((1.0, "?"), (0.5, "f4"), (0.1, "f8")):
        scores[2, 4] = value
        assert predictions.PredictionBatch.of(scores).in_least_type().dtype == np.dtype(expected)
    scores[2, 4] = np.nan
    with pytest.raises(
        ValueError,
        match=r"^predictions: must be numbers in \[0, 1\], and none missing; 1 of 5 are missing, and 0 outside$",
    ):
        predictions.PredictionBatch.of(scores).in_least_type()


def test_an_array_on_disk_is_not_copied(tmp_path: Path) -> None:
    mapped = on_disk(tmp_path, SCORES)
    assert all(np.shares_memory(block, mapped) for block in client._batch(mapped))


def test_changes_to_an_array_on_disk_that_are_in_memory_alone_are_kept(tmp_path: Path) -> None:
    on_disk(tmp_path, SCORES)
    mapped = np.load(tmp_path / "scores.npy", mmap_mode="c")
    mapped[:] = 0.1
    batch = client._batch(mapped)
    audit_digest(client.gaps.header_of("loans", "", "sp", batch, 1.0, None, b""), batch)
    assert (mapped == 0.1).all()


def with_column(name: str, values: Any) -> pd.DataFrame:
    return SCORES.reset_index(drop=True).assign(**{"person": IDS, name: values})


PEOPLE = len(OWN)
HALF: list[Any] = [0.5] * (PEOPLE - 1)
REFUSED: dict[str, tuple[pd.DataFrame, str, str]] = {
    "NaN": (with_column("m2", [*HALF, float("nan")]), "person", "column 'm2' .* none missing"),
    "null": (with_column("m2", pd.array([1] * (PEOPLE - 1) + [None], "Int8")), "person", "column 'm2' .* none missing"),
    "no decision": (with_column("m2", pd.array([True] * (PEOPLE - 1) + [None], "boolean")), "person", "column 'm2' "),
    "too large": (with_column("m2", [*HALF, 73519.0]), "person", r"column 'm2' .* numbers in \[0, 1\]"),
    "text": (with_column("m2", ["73519"] * PEOPLE), "person", "column 'm2' .* numbers"),
    "times": (with_column("m2", pd.Timestamp("2020-01-01")), "person", "column 'm2' .* numbers"),
    "no ids": (with_column("m2", 0.5), "customer", "no column 'customer'; their columns are m1, m2, person"),
    "no models": (with_column("m2", 0.5)[["person"]], "person", "no column of a model"),
    "an id twice": (with_column("person", [*IDS[:-1], IDS[0]]), "person", "ids: row 40 has the id of row 1; "),
    "an id missing": (with_column("person", [*IDS[:-1], None]), "person", "ids: row 40 has no id"),
    "somebody else": (with_column("person", [*IDS[:-1], "73519"]), "person", "ids are not those of the service's rows"),
    "fewer": (with_column("m2", 0.5).iloc[1:], "person", "ids are not those of the service's rows"),
}


@pytest.mark.parametrize("way", ["a file", "an Arrow table", "a frame of pandas"])
def test_what_cannot_be_asked_is_said_by_its_column_and_costs_nothing(
    audits: AuditClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    if way == "a file":
        monkeypatch.setattr(predictions, "_AT_ONCE", 1)
    before = audits.terms()
    for what, (table, ids, why) in REFUSED.items():
        asked, _ = WAYS[way](tmp_path, table)
        with pytest.raises(ValueError, match=why) as caught:
            audits.ask(asked, "sp", 1.0, ids=ids)
        assert "73519" not in str(caught.value), what
        assert "\n" not in str(caught.value), what
    assert audits.terms() == before


def test_what_is_no_table_is_said(audits: AuditClient, tmp_path: Path) -> None:
    broken = tmp_path / "broken.parquet"
    broken.write_text("no table")
    twice = pa.table([[0.5], [0.5]], ["m1", "m1"])
    for asked, ids, why in (
        (tmp_path / "none.parquet", "person", "none.parquet: no such file"),
        (broken, None, "broken.parquet: it looks like text or something else, not Parquet"),
        (tmp_path, None, "no such file"),
        (twice, None, "two columns of the predictions have one name"),
        (pa.table({"m1": pa.array([], pa.float64())}), None, "predictions have no rows"),
        (np.zeros(PEOPLE), "person", "ids='person' is the name of a column, and predictions are no table"),
    ):
        with pytest.raises(ValueError, match=why):
            audits.ask(asked, "sp", 1.0, ids=ids)


@pytest.mark.check
def test_a_service_that_is_lost_is_sent_the_whole_table_again(
    audits: AuditClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, ids = held("a file", tmp_path, SCORES, 8)
    own = grouped(tmp_path, WHOLE, 'id = "person"')
    with ExitStack() as running:
        running.enter_context(own.served())
        calls = []

        def cut_off(*arguments: Any, **others: Any) -> Any:
            calls.append(arguments)
            if len(calls) == 1:
                running.close()
                running.enter_context(own.started())
            return ask(*arguments, **others)

        ask = client.gaps.ask
        monkeypatch.setattr(client.gaps, "ask", cut_off)
        with own.client("alice") as other:
            answer = other.ask(asked, "sp", EPSILON, ids=ids, once=True)
    assert len(calls) > 1
    assert answer.gaps == pytest.approx(audits.ask(asked, "sp", EPSILON, ids=ids).gaps, abs=CLOSE)
