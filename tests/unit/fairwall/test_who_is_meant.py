"""Whom predictions are about is what the caller says, in any form; what contradicts itself is refused, and says how."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import narwhals
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from fairwall.client import AuditClient, rows
from fairwall.client.rehearsal import _people
from fairwall.client.search import candidates_of
from fairwall.tools.asynchronous import AsyncAuditClient
from fairwall.tools.classifiers import ask_about
from fairwall.tools.pytest_plugin import AuditFixture
from fairwall.tools.scoring import GapScorer
from fairwall.wire.rows import digest_of, ordered_ids

IDS = ["0007", "7", "x1", "12", "é", "30"]
"""Of the service's rows, in the order of its file."""
SCORES = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5])
OTHER = SCORES / 2
ORDER = [3, 0, 5, 1, 2, 4]
"""In which the caller has them."""
OWN, BACK = [IDS[row] for row in ORDER], [IDS[row] for row in ORDER[::-1]]
MINE = SCORES[ORDER]


class Sent(Exception):
    """All was right: a request would be sent now."""


class Offline(AuditClient):
    """A client that knows a service's rows, and shows what it would send."""

    def __init__(self, ids: Any, public: Mapping[str, Any] | None = None) -> None:
        written, order = ordered_ids(ids)
        public = public or {}
        digests = digest_of(written, order), digest_of(written, order, public)
        self.known: rows.KnownRows | None = rows.KnownRows("person", tuple(public), *digests, len(written))
        self.sorted = [list(written)[row] for row in order]
        self._data, self._kept, self._service, self._groups = "loans", None, None, None  # type: ignore[assignment]

    def terms(self) -> Any:
        return SimpleNamespace(rows=self.known, mechanism="laplace")

    def expected_error(self, *_: Any) -> Any:
        return SimpleNamespace(error=0.1)

    def _arranged(self, *given: Any) -> Any:
        self.sent, self.digest = super()._arranged(*given)
        return self.sent, self.digest

    def _call(self, *_: Any) -> Any:
        raise Sent

    def told(self, ask: Callable[[], Any]) -> dict[str, list[float]]:
        """Whose predictions a question would send, of each model."""
        with pytest.raises(Sent):
            ask()
        values = np.concatenate([*self.sent]).astype("f8").T.tolist()
        return dict(zip([each.decode() for each in self.sorted], values, strict=True)) if self.digest else {}

    def asked(self, predictions: Any, **how: Any) -> dict[str, list[float]]:
        return self.told(lambda: self.ask(predictions, "sp", 1.0, **how))


@pytest.fixture
def audits() -> Offline:
    return Offline(IDS)


ONE = {person: [score] for person, score in zip(IDS, SCORES, strict=True)}
BOTH = {person: [score, score / 2] for person, score in zip(IDS, SCORES, strict=True)}


def series(values: Any = MINE, ids: Any = OWN) -> pd.Series:
    return pd.Series(values, index=pd.Index(ids))


def refused(call: Callable[[], Any], why: str) -> None:
    """Refused by one line, that quotes no id."""
    with pytest.raises(ValueError, match=why) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert not any(person in str(caught.value) for person in ("0007", "x1", "é"))


FRAME = pd.DataFrame({"m1": MINE, "m2": MINE / 2}, index=pd.Index(OWN))
TABLE = pd.DataFrame({"person": OWN, "m1": MINE, "m2": MINE / 2})


class Stream:
    """What has nothing but Arrow's interface, as frames and columns of libraries that are not installed here."""

    def __init__(self, held: Any) -> None:
        self._held = held

    def __arrow_c_stream__(self, schema: object = None) -> Any:
        return self._held.__arrow_c_stream__(schema)


def arrow(table: pd.DataFrame = TABLE) -> pa.Table:
    return pa.Table.from_pandas(table, preserve_index=False)


def on_disk(folder: Path) -> Path:
    parquet.write_table(arrow(), folder / "scores.parquet")
    return folder / "scores.parquet"


AGREE: dict[str, tuple[Any, dict[str, Any]]] = {
    "labels and ids": (series(), {"ids": OWN}),
    "labels and ids of NumPy": (series(), {"ids": np.array(OWN)}),
    "labels and ids of Arrow": (series(), {"ids": pa.array(OWN)}),
    "labels and an iterator of ids": (series(), {"ids": iter(OWN)}),
    "labels and ids that count": (series(), {"ids": pd.Series(OWN)}),
    "labels of the ids": (series(ids=[*"fbdace"]), {"ids": series(OWN, [*"fbdace"])}),
    "labels and a table": (series(), {"table": TABLE[["person"]]}),
    "labels of the table": (TABLE.iloc[::-1]["m1"], {"table": TABLE.iloc[::-1]}),
    "labels, ids and a table": (series(), {"ids": OWN, "table": {"person": OWN}}),
    "labels that count": (pd.Series(MINE), {"ids": OWN}),
    "no labels, and ids that have some": (MINE, {"ids": series(OWN, [*"fbdace"])}),
    "counted by pandas, and ids of a part of a table": (pd.Series(MINE), {"ids": series(OWN, range(3, 9))}),
    "an iterator": (iter(MINE), {"ids": OWN}),
    "a generator": ((score for score in MINE), {"table": {"person": (one for one in OWN)}}),
    "the index is called so": (pd.DataFrame({"m1": MINE}, pd.Index(OWN, name="person")), {"ids": "person"}),
    "the table's index is called so": (MINE, {"table": pd.DataFrame({"a": MINE}, pd.Index(OWN, name="person"))}),
    "of Arrow": (pa.array(MINE), {"ids": pa.chunked_array([OWN])}),
    "of one stream": (Stream(pa.chunked_array([MINE])), {"ids": Stream(pa.chunked_array([OWN]))}),
    "of narwhals": (narwhals.from_native(series(), series_only=True), {"ids": OWN}),
    "fractions": ([Fraction(score) for score in MINE], {"ids": OWN}),
    "decimals": ([Decimal(str(score)) for score in MINE], {"ids": OWN}),
    "objects": (MINE.astype(object), {"ids": np.array(OWN, object)}),
    "nullable, none of them null": (series(pd.array(MINE, "Float64")), {}),
    "masked, none of them": (np.ma.masked_array(MINE, mask=False), {"ids": np.ma.masked_array(OWN)}),
}


@pytest.mark.parametrize("what", AGREE)
def test_what_agrees_is_about_whom_it_says(audits: Offline, what: str) -> None:
    predictions, how = AGREE[what]
    assert audits.asked(predictions, **how) == ONE


TWO: dict[str, tuple[Any, dict[str, Any]]] = {
    "a frame": (FRAME, {}),
    "a frame and ids": (FRAME, {"ids": OWN}),
    "a frame, turned over, and a table": (FRAME.T, {"table": TABLE}),
    "a frame whose rows count": (TABLE[["m1", "m2"]], {"ids": OWN}),
    "a mapping": ({"m1": FRAME["m1"], "m2": FRAME["m2"]}, {}),
    "a mapping and ids": ({"m1": FRAME["m1"], "m2": FRAME["m2"].to_numpy()}, {"ids": OWN}),
    "a mapping of iterators": ({"m1": iter(MINE), "m2": iter(MINE / 2)}, {"ids": OWN}),
    "a list": ([FRAME["m1"], FRAME["m2"]], {}),
    "a list with an array": ([MINE, FRAME["m2"]], {"ids": iter(OWN)}),
    "a column": (TABLE, {"ids": "person"}),
    "its own column of ids": (TABLE.sample(frac=1, random_state=1), {}),
    "a column of Arrow": (arrow(), {"ids": "person"}),
    "its own column of Arrow": (arrow().select(["m1", "person", "m2"]), {}),
    "a stream": (Stream(arrow()), {"ids": "person"}),
    "a reader": (arrow().to_reader(), {"ids": "person"}),
    "a frame of narwhals": (narwhals.from_native(arrow()), {"ids": OWN}),
    "a labelled frame of narwhals": (narwhals.from_native(FRAME), {}),
}


@pytest.mark.parametrize("what", TWO)
def test_tables_and_lists_of_models_are_about_whom_they_say(audits: Offline, what: str) -> None:
    predictions, how = TWO[what]
    assert audits.asked(predictions, **how) == BOTH


def test_a_file_s_own_column_of_ids_is_used(audits: Offline, tmp_path: Path) -> None:
    assert audits.asked(on_disk(tmp_path), ids=OWN) == audits.asked(str(on_disk(tmp_path))) == BOTH


SWAPPED = [OWN[1], OWN[0], *OWN[2:]]
ORDERED = r"contradict each other, the same in another order: row {} is the first that differs; put both in one order"
CONTRADICT: dict[str, tuple[Any, dict[str, Any], str]] = {
    "labels, ids": (series(), {"ids": BACK}, f"^the labels of predictions and ids {ORDERED.format(1)}.*to_numpy"),
    "labels, two ids swapped": (series(), {"ids": SWAPPED}, ORDERED.format(1)),
    "labels, the last ids swapped": (series(), {"ids": [*OWN[:4], OWN[5], OWN[4]]}, ORDERED.format(5)),
    "labels, ids of others": (series(), {"ids": [*OWN[:5], "new"]}, "contradict each other, others: row 6"),
    "labels, a table": (series(), {"table": {"person": BACK}}, "^the labels of predictions and table contradict"),
    "labels of nobody, ids": (series(ids=range(6, 12)), {"ids": OWN}, "contradict each other, others: row 1 "),
    "labels twice, ids": (series(ids=[1, 1, 2, 3, 4, 5]), {"ids": OWN}, "contradict each other, others: row 1 "),
    "labels of two levels, ids": (series(ids=[*zip(OWN, OWN, strict=True)]), {"ids": OWN}, "contradict each other"),
    "ids, a table": (MINE, {"ids": OWN, "table": {"person": BACK}}, f"^ids and table {ORDERED.format(1)}"),
    "ids, fewer than a table": (MINE, {"ids": OWN[1:], "table": {"person": OWN}}, "contradict each other, 5 and 6"),
    "a table's columns": (MINE, {"table": {"person": series(OWN, IDS), "a": series(MINE, OWN)}}, "and column 'a' cont"),
    "a frame, ids": (FRAME, {"ids": BACK}, ORDERED.format(1)),
    "a frame turned over, ids": (FRAME.T, {"ids": BACK}, ORDERED.format(1)),
    "a mapping": ({"m1": series(), "m2": series(ids=BACK)}, {}, f"column 'm1' and column 'm2' {ORDERED.format(1)}"),
    "a mapping, ids": ({"m1": series(), "m2": series()}, {"ids": BACK}, ORDERED.format(1)),
    "a list": ([series(), series(ids=BACK)], {}, f"the labels of model 0 and model 1 {ORDERED.format(1)}"),
    "a column, ids": (TABLE, {"ids": BACK}, f"ids and column 'person' of the predictions {ORDERED.format(1)}"),
    "a column of Arrow, ids": (arrow(), {"ids": BACK}, "ids and column 'person' of the predictions contradict"),
    "two columns": (TABLE.assign(id=BACK), {"ids": "id"}, "ids and column 'person' of the predictions contradict"),
    "the index and a column": (TABLE.set_index(pd.Index(BACK, name="person")), {"ids": "person"}, ORDERED.format(1)),
    "a table's index and its column": (
        MINE,
        {"table": TABLE.set_index(pd.Index(BACK, name="person"))},
        f"the labels of table and its column 'person' {ORDERED.format(1)}",
    ),
    "counted by pandas, ids shuffled": (
        pd.Series(MINE),
        {"ids": pd.Series(OWN).sample(frac=1, random_state=3)},
        "contradict each other",
    ),
    "as many models as people": (pd.DataFrame(np.eye(6)), {"ids": OWN}, "as many models as people .* pass .to_numpy"),
}


@pytest.mark.parametrize("what", CONTRADICT)
def test_a1_what_contradicts_itself_is_refused_and_says_how(audits: Offline, what: str) -> None:
    predictions, how, why = CONTRADICT[what]
    refused(lambda: audits.ask(predictions, "sp", 1.0, **how), why)


NO_ORDER: dict[str, tuple[Any, dict[str, Any], str]] = {
    "a set of ids": (MINE, {"ids": {*OWN}}, "ids: a set has no order"),
    "a frozen set of ids": (MINE, {"ids": frozenset(OWN)}, "ids: a frozenset has no order"),
    "ids that are keys": (MINE, {"ids": dict.fromkeys(OWN).keys()}, "ids: a dict_keys has no order"),
    "ids by name": (MINE, {"ids": dict.fromkeys(OWN)}, "ids: must be one a row, .* not dict"),
    "a frame of ids": (MINE, {"ids": TABLE[["person"]]}, r"ids: must be one a row, .* not DataFrame \(6, 1\)"),
    "ids of bytes": (MINE, {"ids": b"123456"}, "ids: must be one a row, .* not bytes"),
    "an id alone": (MINE, {"ids": 7}, "ids: must be one a row, .* not int"),
    "masked ids": (MINE, {"ids": np.ma.masked_array(OWN, [1, 0, 0, 0, 0, 1])}, "ids: 2 of 6 are masked"),
    "ids read before": (MINE, {"ids": iter([])}, "0 ids are not one for each prediction"),
    "a set in a table": (MINE, {"table": {"person": {*OWN}}}, "table: column 'person': a set has no order"),
    "no table": (MINE, {"table": "people.csv"}, "table: no column 'person'"),
    "a set": ({0.1, 0.2}, {}, "predictions: a set has no order"),
    "values of a mapping": (dict.fromkeys(MINE).values(), {}, "predictions: a dict_values has no order"),
    "a set in a mapping": ({"m1": {0.1}}, {}, "column 'm1' of the predictions: a set has no order"),
    "a set in a list": ([{0.1}, {0.2}], {}, "predictions: a set has no order"),
}


@pytest.mark.parametrize("what", NO_ORDER)
def test_a1_what_has_no_order_is_refused_by_its_name(audits: Offline, what: str) -> None:
    predictions, how, why = NO_ORDER[what]
    refused(lambda: audits.ask(predictions, "sp", 1.0, **how), why)


def test_a1_an_index_with_a_name_is_ids_also_where_it_counts() -> None:
    audits = Offline(range(6))
    expected = {str(row): [score] for row, score in enumerate(SCORES)}
    named = pd.Series(SCORES, pd.RangeIndex(6, name="id"))
    assert audits.asked(named) == audits.asked(named, ids=range(6)) == expected
    assert audits.asked(named.sample(frac=1, random_state=1)) == expected
    assert audits.asked(pd.Series(SCORES, pd.Index([*range(6)], name="id"))) == expected  # as pandas 2 reads it
    refused(lambda: audits.ask(named, "sp", 1.0, ids=[*range(6)][::-1]), ORDERED.format(1))
    refused(lambda: Offline(IDS).ask(named, "sp", 1.0), "neither rows nor columns are labelled with the ids")
    assert audits.asked(named.rename_axis(None)) == {}, "these count, and say nothing"
    assert audits.asked(named.to_frame("m1")) == audits.asked(named.to_frame("m1").T) == expected
    assert _people(named.to_frame(), None, None)["ids"] == [*"012345"]
    assert _people(named.rename_axis(None).to_frame(), None, None)["ids"] is None


def test_a1_0007_is_not_7_and_what_lost_its_zeros_is_told_so(audits: Offline) -> None:
    assert audits.asked(series())["0007"] != audits.asked(series())["7"]
    assert Offline([7.0, 8.0]).asked(MINE[:2], ids=["7", "8.0"]) == {"7": [MINE[0]], "8": [MINE[1]]}
    why = "they differ in leading zeros alone, .* read ids as text"
    for its, own in ((["0007", "0012"], [7, 12]), ([7, 12], ["0007", "0012"]), (["x", "0000000001"], ["x", "1"])):
        refused(lambda its=its, own=own: Offline(its).ask(MINE[:2], "sp", 1.0, ids=own), why)  # type: ignore[misc]
        refused(lambda its=its, own=own: Offline(its).ask(series(MINE[:2], own), "sp", 1.0), why)  # type: ignore[misc]


def test_what_is_known_of_other_ids_is_said(audits: Offline) -> None:
    for ids, why in (
        (OWN[1:], "the ids are not those of the service's rows: 5 are given, and the service has 6"),
        ([*OWN, "new"], "7 are given, and the service has 6"),
        ([*OWN[1:], "new"], "as many, 6, but some are others, or in another spelling"),
        ([*OWN[1:], OWN[-1]], "ids: row 6 has the id of row 5"),
        ([*OWN[1:], None], "ids: row 6 has no id"),
        (pd.array([*range(5), None], "Int64"), "ids: row 6 has no id"),
    ):
        refused(lambda ids=ids: audits.ask(np.zeros(len(ids)), "sp", 1.0, ids=ids), why)  # type: ignore[misc]
    refused(lambda: audits.ask(series(MINE[1:], OWN[1:]), "sp", 1.0), "5 are given, and the service has 6; to trust")


SEGMENTS = [*"ababab"]
DECISIONS = (MINE > 0.2).astype(float)


def test_segments_agree_with_decisions_and_ids(audits: Offline) -> None:
    """A model of who is selected, and one of who is not, in each segment."""

    def asked(decisions: Any, segments: Any, **how: Any) -> dict[str, list[float]]:
        return audits.told(lambda: audits.by_segment(decisions, segments, "group", 1.0, **how))

    inside = {person: [0.0] * 4 for person in OWN}
    for row, person in enumerate(OWN):
        inside[person][(row % 2) + (0 if DECISIONS[row] else 2)] = 1.0
    labelled = series(SEGMENTS)
    assert asked(series(DECISIONS), labelled) == inside
    assert asked(DECISIONS, labelled) == inside, "labels of segments say it too"
    assert asked(DECISIONS, labelled, ids=OWN) == asked(DECISIONS, iter(SEGMENTS), ids=OWN) == inside
    assert asked(series(DECISIONS), pa.array(SEGMENTS), table=TABLE) == inside
    for decisions, segments, how, why in (
        (DECISIONS, labelled, {"ids": BACK}, ORDERED.format(1)),
        (series(DECISIONS), SEGMENTS, {"ids": BACK}, ORDERED.format(1)),
        (series(DECISIONS), labelled[::-1], {}, f"decisions and segments {ORDERED.format(1)}"),
        (DECISIONS, {*SEGMENTS}, {}, "segments: a set has no order"),
        (DECISIONS, pd.Series(["a"] * 4 + [pd.NA, None]), {}, "segments: some people have none, 2; make"),
        (DECISIONS, np.ma.masked_array(SEGMENTS, [0, 0, 0, 0, 0, 1]), {}, "segments: 1 of 6 are masked"),
    ):
        refused(lambda d=decisions, s=segments, h=how: audits.by_segment(d, s, "group", 1.0, **h), why)  # type: ignore[misc]


def test_every_other_way_to_ask_reads_it_by_the_same_rule(audits: Offline) -> None:
    right, wrong = {"ids": OWN}, {"ids": BACK}
    ways: dict[str, Callable[..., Any]] = {
        "count_by_group": lambda **how: audits.count_by_group(series(), "group", 1.0, **how),
        "by_group": lambda **how: audits.by_group(series(), "group", 1.0, **how),
        "by_quantile": lambda **how: audits.by_quantile(series(), "group", 1.0, quantiles=2, **how),
        "standardised_difference": lambda **how: audits.standardised_difference(series(), "group", 1.0, **how),
        "search": lambda **how: audits.search(
            {"a": series(), "b": series()}, "sp", 1.0, utility=[0.5, 0.6], baseline="a", **how
        ),
        "ask_about": lambda **how: ask_about(audits, Model(), FRAME, "sp", 1.0, **how),
        "probabilities": lambda **how: ask_about(audits, Model(), FRAME, "sp", 1.0, response="probabilities", **how),
    }
    for ask in ways.values():
        assert audits.told(lambda ask=ask: ask(**right))  # type: ignore[misc]
        assert audits.told(ask)
        refused(lambda ask=ask: ask(**wrong), ORDERED.format(1))  # type: ignore[misc]
    tool = AuditFixture(audits, TABLE, 1.0)
    assert audits.told(lambda: tool.gap("sp", Model()))
    assert audits.told(lambda: tool.by_group("group", Model(), FRAME))
    for ask in (tool.ask, tool.gap_at_most):
        refused(lambda ask=ask: ask("sp", Model(), FRAME.iloc[::-1]), ORDERED.format(1))  # type: ignore[misc]
    refused(lambda: tool.by_group("group", Model(), FRAME.iloc[::-1]), ORDERED.format(1))


class Model:
    """A classifier of what is in m1."""

    classes_ = (0, 1)
    feature_names_in_ = ("m1",)

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        return (X["m1"].to_numpy() > 0.2).astype(int)

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        return np.stack([1 - X["m1"].to_numpy(), X["m1"].to_numpy()], 1)


def test_asyncio_and_scorers_read_it_by_the_same_rule(audits: Offline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairwall.tools.asynchronous.AuditClient", lambda *_, **__: audits)
    monkeypatch.setattr("fairwall.tools.scoring.AuditClient", lambda *_, **__: audits)
    monkeypatch.setattr(Offline, "close", lambda _: None)

    async def ask() -> None:
        async with AsyncAuditClient("", "") as client:
            await client.ask(series(), "sp", 1.0, ids=BACK)

    refused(lambda: asyncio.run(ask()), ORDERED.format(1))
    scorer = GapScorer("", "", "sp", 1.0, FRAME, ids=iter(OWN))
    assert audits.told(lambda: scorer(Model())) == audits.told(lambda: scorer(Model())) != {}
    refused(lambda: GapScorer("", "", "sp", 1.0, FRAME, ids=BACK)(Model()), ORDERED.format(1))
    refused(lambda: GapScorer("", "", "sp", 1.0, FRAME, ids={*OWN}), "ids: a set has no order")


def test_utilities_are_those_of_the_candidates_that_they_are_labelled_with() -> None:
    def of(utility: Any, baseline: Any = "a") -> tuple[float, ...]:
        return candidates_of(("a", "b"), 2, utility, baseline, None).utilities

    assert of(pd.Series([0.6, 0.5], ["b", "a"])) == of({"b": 0.6, "a": 0.5}) == of(iter([0.5, 0.6])) == (0.5, 0.6)
    assert of(pd.Series([0.5, 0.6])) == of(np.array([0.5, 0.6])) == (0.5, 0.6)
    for utility, why in (
        ({0.5, 0.6}, "utility: a set has no order"),
        (pd.Series([0.5, 0.6], ["a", "c"]), "utility: must have every candidate's name and no other; 'b'"),
        (pd.Series([0.5, 0.6, 0.7], ["a", "b", "a"]), "utility: a candidate is labelled twice"),
        (None, "utility: must be one finite number for each of 2 candidates"),
        ({"a": 0.5, "b": None}, "utility: must be one finite number for each of 2 candidates"),
    ):
        refused(lambda utility=utility: of(utility), why)  # type: ignore[misc]
    refused(lambda: of([0.5, 0.6], 0.0), "baseline 0.0: must be a candidate's name, or its number")


def test_a_rehearsal_s_people_are_those_of_its_rows() -> None:
    for people in (TABLE, arrow(), {name: TABLE[name] for name in TABLE}, {"person": iter(OWN)}, Stream(arrow())):
        assert _people(people, "person", None) | {"labels": None} == {"people": 6, "ids": OWN, "labels": None}
    assert _people(FRAME, None, None)["ids"] == OWN
    assert _people({"m1": FRAME["m1"], "y": pd.array([0, 1, 1, 0, 1, 1], "Int8")}, None, "y") == {
        "people": 6,
        "ids": OWN,
        "labels": [0, 1, 1, 0, 1, 1],
    }
    refused(lambda: _people({"a": series(), "b": series(ids=BACK)}, None, None), ORDERED.format(1))
    refused(lambda: _people(TABLE, None, "person"), "label 'person': must be numbers")
    refused(lambda: _people({*OWN}, None, None), "rows: a set has no order")


def gradients() -> Any:
    import torch

    return torch.tensor(MINE, dtype=torch.float64, requires_grad=True)


def sparse() -> Any:
    from scipy import sparse

    return sparse.csr_matrix(MINE)


class Lazy:
    """A frame of polars that holds no rows yet: its columns have names."""

    columns = ("m1",)

    def collect(self) -> None:
        """Do what the caller should."""


NUMBERS = "must be numbers, and none missing; "
VALUES: dict[str, tuple[Callable[[], Any], str]] = {
    "wants gradients": (gradients, ""),
    "a list that wants gradients": (lambda: [gradients(), gradients()], ""),
    "of few bits": (lambda: gradients().bfloat16(), ""),
    "lazy": (Lazy, r"predictions: a Lazy holds no rows yet: pass \.collect\(\)"),
    "complex": (lambda: MINE + 1j, f"predictions: {NUMBERS}they are complex"),
    "complex in a list": (lambda: [0.5, 1j], f"predictions: {NUMBERS}they are complex"),
    "complex in an array of objects": (lambda: np.array([0.5, 1j], object), f"{NUMBERS}some are complex"),
    "complex in a tensor": (lambda: gradients().detach() * 1j, f"predictions: {NUMBERS}they are complex"),
    "text": (lambda: ["0.5"] * 6, f"predictions: {NUMBERS}they are text"),
    "text among numbers": (lambda: [0.5, "0.5"], f"predictions: {NUMBERS}they are text"),
    "text of pandas": (lambda: pd.Series(["0", "1"]), f"predictions: {NUMBERS}they are text|some are text"),
    "text of Arrow": (lambda: pa.array(["0", "1"]), f"predictions: {NUMBERS}some are text"),
    "bytes": (lambda: [b"0", b"1"], f"predictions: {NUMBERS}they are text"),
    "times": (lambda: np.array([0, 1], "m8[s]"), f"predictions: {NUMBERS}they are times"),
    "a scalar": (lambda: 0.5, r"shape \(people,\) or \(models, people\), not \(\)"),
    "nothing": (lambda: None, "predictions: .* 1 of 1 are missing"),
    "no rows": (list, r"shape \(people,\) or \(models, people\), not \(0,\)"),
    "read before": (lambda: iter([]), r"shape \(people,\) or \(models, people\), not \(0,\)"),
    "three axes": (lambda: np.zeros((1, 2, 6)), r"not \(1, 2, 6\)"),
    "sparse": (sparse, r"predictions: a csr_matrix is sparse: pass \.toarray\(\)"),
    "masked": (lambda: np.ma.masked_array(MINE, MINE > 0.3), "predictions: 2 of 6 are masked"),
    "masked in a mapping": (lambda: {"m1": np.ma.masked_array(MINE, MINE > 0.3)}, "column 'm1' .*: 2 of 6 are masked"),
    "pandas' NA": (lambda: pd.Series([0.5, pd.NA, None]), f"predictions: {NUMBERS}2 of 3 are missing"),
    "nullable numbers": (lambda: pd.Series([1, None, 0], dtype="Int8"), "predictions: .* 1 of 3 are missing"),
    "nullable decisions": (lambda: pd.array([True, None, None], "boolean"), "predictions: .* 2 of 3 are missing"),
    "NaN": (lambda: [0.5, math.nan, 1.5, math.nan], "predictions: .* 2 of 4 are missing, and 1 outside"),
    "None in a list": (lambda: [[0.5, None], [1, 0]], f"predictions: {NUMBERS}1 of 2 are missing"),
    "null of Arrow": (lambda: pa.table({"m1": [0.5, None]}), "column 'm1' of the predictions: .* 1 of 2 are missing"),
    "models of other lengths": (lambda: [[0.5, 1], [1]], "predictions: must be as many of each model"),
    "columns of other lengths": (lambda: {"a": [0.5, 1], "b": [1]}, r"column 'b' .*: has the shape \(1,\), and the fi"),
    "decisions": (lambda: [True, False], ""),
}


@pytest.mark.parametrize("what", VALUES)
def test_a14_what_is_no_number_is_refused_by_one_line_and_what_is_one_is_taken(audits: Offline, what: str) -> None:
    make, why = VALUES[what]
    audits.known = None
    if not why:
        with pytest.raises(Sent):
            audits.ask(make(), "sp", 1.0)
        return
    refused(lambda: audits.ask(make(), "sp", 1.0), why)


def test_gradients_bits_and_decimals_are_the_numbers_that_they_are(audits: Offline) -> None:
    assert audits.asked(gradients(), ids=OWN) == audits.asked([gradients()], ids=OWN) == ONE


def test_polars_is_read_as_others_are(audits: Offline) -> None:
    import polars

    frame = polars.from_arrow(arrow())
    assert audits.asked(frame) == audits.asked(frame, ids="person") == BOTH
    refused(lambda: audits.ask(frame.lazy(), "sp", 1.0), r"pass \.collect\(\)")


@pytest.mark.parametrize("epsilon", ["0.1", None, True, np.True_, math.nan, math.inf, 0, -1.0, 1j, [0.1], np.ones(2)])
def test_what_is_no_epsilon_is_refused_by_one_line(audits: Offline, epsilon: Any) -> None:
    for ask in (
        lambda: audits.ask(MINE, "sp", epsilon),
        lambda: audits.count_by_group(MINE, "group", epsilon),
        lambda: audits.ask_table("scores", "sp", epsilon, id="id"),
        lambda: audits.ask_sealed(b"a model", "sp", epsilon),
        lambda: audits.release(epsilon),
        lambda: AuditClient.expected_error(audits, "sp", 1, epsilon),
    ):
        refused(ask, "^epsilon must be a number")


@pytest.mark.parametrize("epsilon", [np.float64(0.5), np.float32(0.5), 1, np.int8(1), Fraction(1, 2), Decimal("0.5")])
def test_any_real_number_is_an_epsilon(audits: Offline, epsilon: Any) -> None:
    assert audits.asked(MINE, ids=OWN, threshold=epsilon) == ONE
    with pytest.raises(Sent):
        audits.ask(MINE, "sp", epsilon)


def test_a14_other_arguments_of_another_type_are_refused_by_one_line(audits: Offline) -> None:
    for ask, why in (
        (lambda: audits.ask(MINE, "sp", 1.0, request_id=7), "request_id must be text, in quotes, not of type int"),
        (lambda: audits.release(1.0, request_id=b"7"), "request_id must be text, in quotes, not of type bytes"),
        (lambda: audits.count_by_group(MINE, "group", 1.0, request_id=7), "request_id must be text"),
        (lambda: audits.ask(MINE, "sp", 1.0, threshold="0.1"), "threshold must be a number, not of type str"),
        (lambda: audits.ask(MINE, "sp", 1.0, by=7), "by must be text"),
        (lambda: audits.ask_sealed(b"a", "sp", 1.0, by=None), "by must be text"),
        (lambda: audits.ask_table(7, "sp", 1.0, id="id"), "table must be text"),
        (lambda: audits.ask_table("scores", "sp", 1.0, id=7), "id must be text"),
        (lambda: audits.ask_table("scores", "sp", 1.0, id="id", models={"m1"}), "models: a set has no order"),
        (lambda: audits.ask_table("scores", "sp", 1.0, id="id", models=iter([])), "models must be a list of names"),
        (lambda: audits.ask_table("scores", "sp", 1.0, id="id", models="m1"), "models must be a list of names"),
        (lambda: AuditClient.expected_error(audits, "sp", "1", 1.0), "models: must be at least 1"),  # type: ignore[arg-type]
    ):
        refused(ask, why)  # type: ignore[arg-type]
