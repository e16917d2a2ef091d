"""Rows with ids over mTLS: the service takes predictions in the order of ids, and refuses whose digest is another."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count, permutations
from typing import Any

import grpc
import narwhals
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compliance.answers.audit_service import AuditService
from compliance.answers.audits import AuditCase
from compliance.records.rows import FileRows, identified
from fairwall.client import AuditClient
from fairwall.client.gaps import Answer, Audits, ask, terms
from fairwall.client.rows import arranged, from_message
from fairwall.compliance.v1.audit_service_pb2 import GetTermsRequest
from fairwall.compliance.v1.audit_service_pb2_grpc import add_AuditServiceServicer_to_server
from fairwall.rpc.errors import reason_of
from fairwall.wire.v1 import error_pb2 as error
from tests.contract.test_audit_service import LABELS, PROTECTED, open_case

IDS = [30, "b", 4, "a", "é", 10, "B", 9]  # in the order of the file
SORTED = ["10", "30", "4", "9", "B", "a", "b", "é"]
PREDICTIONS = np.linspace(0, 1, 8) ** 2
"""Of the people in the order of the file."""

BY_ID = PREDICTIONS[[[str(one) for one in IDS].index(one) for one in SORTED]]
GAP = PREDICTIONS[PROTECTED == 1].mean() - PREDICTIONS[PROTECTED == 0].mean()
PUBLIC = {"income": [5, 3, 8, 1, 7, 2, 6, 4]}


@pytest.fixture
def cases() -> dict[str, AuditCase]:
    rows = FileRows(np.ones(8, np.bool_), identified("id", IDS, PUBLIC))
    return {"deal": replace(open_case("exact", math.inf), rows=rows)}


@pytest.fixture
def audits(cases: dict[str, AuditCase], serve: Any, dial: Any, credentials: Any) -> Audits:
    address = serve(
        lambda server: add_AuditServiceServicer_to_server(AuditService(cases), server), credentials["compliance"]
    )
    return Audits(dial(address, "compliance", credentials["developer"]))


def asked(audits: Audits, predictions: np.ndarray, digest: bytes, request_id: str = "r") -> Answer:
    return ask(audits, "deal", request_id, "sp", np.atleast_2d(predictions), math.inf, rows_digest=digest)


def refused(call: Callable[[], object]) -> error.Reason:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return reason_of(caught.value)


def digests(audits: Audits) -> tuple[bytes, bytes]:
    rows = audits.GetTerms(GetTermsRequest(deal_id="deal"), timeout=300).rows
    assert (rows.id_column, list(rows.public_columns)) == ("id", ["income"])
    return rows.ids_digest, rows.table_digest


def test_predictions_with_a_digest_are_in_the_order_of_ids_and_others_in_that_of_the_file(audits: Audits) -> None:
    for digest in digests(audits):
        answer = asked(audits, BY_ID, digest, digest.hex())
        assert (answer.gaps.tolist(), answer.rows_compared) == ([pytest.approx(GAP, abs=1e-15)], True)
    answer = asked(audits, PREDICTIONS, b"")
    assert (answer.gaps.tolist(), answer.rows_compared) == ([pytest.approx(GAP, abs=1e-15)], False)
    assert asked(audits, PREDICTIONS, digests(audits)[0], "unsorted").gaps != pytest.approx(GAP, abs=1e-3)


SIX: dict[str, Sequence[object]] = {name: [f"{name}{row % 3}" for row in range(8)] for name in "abcdef"}


@pytest.mark.parametrize(
    ("changed", "told"),
    [(["d"], "'d'"), (["b", "f"], "'b', 'f'"), ([*SIX], "'a', 'b', 'c', 'd', 'e', 'f'")],
)
def test_the_public_columns_that_differ_are_named_and_no_others(
    cases: dict[str, AuditCase], audits: Audits, changed: list[str], told: str
) -> None:
    cases["deal"] = replace(cases["deal"], rows=FileRows(np.ones(8, np.bool_), identified("id", IDS, SIX)))
    message = audits.GetTerms(GetTermsRequest(deal_id="deal"), timeout=5).rows
    own = {"id": IDS} | SIX | {name: [*SIX[name][:-1], "other"] for name in changed}
    with pytest.raises(ValueError, match=rf"^the ids are the service's, but its {told} are others for some rows$"):
        arranged(PREDICTIONS, None, own, from_message(message, 8))
    # A service of before tells of no single column: all are named.
    del message.column_digests[:]
    with pytest.raises(ValueError, match="its 'a', 'b', 'c', 'd', 'e', 'f' are others"):
        arranged(PREDICTIONS, None, own, from_message(message, 8))


def test_a_repeat_in_another_order_is_another_request(audits: Audits) -> None:
    digest, table = digests(audits)
    asked(audits, BY_ID, digest)
    assert asked(audits, BY_ID, digest).gaps == pytest.approx(GAP)
    for predictions, other in ((PREDICTIONS, digest), (BY_ID, table), (BY_ID, b"")):
        assert refused(lambda p=predictions, o=other: asked(audits, p, o)) == error.REASON_REQUEST_ID_REUSED  # type: ignore[misc]


def test_any_other_digest_is_refused(audits: Audits) -> None:
    others = [identified("id", order, {}).digests[0] for order in permutations([30, "b", 4])]
    swapped = identified("id", [IDS[1], IDS[0], *IDS[2:]], PUBLIC).digests
    assert swapped[0] == digests(audits)[0]
    whole = digests(audits)[0]
    for other in (*others, swapped[1], whole[:-1], whole + b"\0", b"\0", bytes(32)):
        assert refused(lambda o=other: asked(audits, BY_ID, o)) == error.REASON_ROWS_DIFFER  # type: ignore[misc]


@pytest.mark.parametrize("rows", [None, FileRows(np.ones(8, np.bool_))])
def test_a_digest_is_refused_where_rows_have_no_ids(
    cases: dict[str, AuditCase], audits: Audits, rows: FileRows | None
) -> None:
    digest, _ = digests(audits)
    cases["deal"] = replace(open_case("exact", math.inf), rows=rows)
    assert not audits.GetTerms(GetTermsRequest(deal_id="deal"), timeout=300).HasField("rows")
    assert refused(lambda: asked(audits, BY_ID, digest)) == error.REASON_ROWS_DIFFER
    assert asked(audits, PREDICTIONS, b"").rows_compared is None


def test_who_is_left_out_changes_the_answer_alone(cases: dict[str, AuditCase], audits: Audits) -> None:
    before = audits.GetTerms(GetTermsRequest(deal_id="deal"), timeout=300)
    known = np.array([True, True, False, True, True, True, True, False])
    cases["deal"] = replace(
        open_case("exact", math.inf, labels=LABELS[known], protected=PROTECTED[known]),
        rows=FileRows(known, identified("id", IDS, PUBLIC)),
    )
    assert audits.GetTerms(GetTermsRequest(deal_id="deal"), timeout=300) == before
    expected = PREDICTIONS[known & (PROTECTED == 1)].mean() - PREDICTIONS[known & (PROTECTED == 0)].mean()
    assert asked(audits, BY_ID, before.rows.ids_digest).gaps == pytest.approx(expected, abs=1e-15)
    assert asked(audits, PREDICTIONS, b"", "file").gaps == pytest.approx(expected, abs=1e-15)
    assert refused(lambda: asked(audits, BY_ID[known], before.rows.ids_digest)) == error.REASON_PREDICTIONS_SHAPE


MODELS = ["m0", "m1", "m2"]
TABLE = pd.DataFrame(
    {"id": [str(one) for one in IDS], **PUBLIC, **{name: PREDICTIONS ** (int(name[1]) + 1) for name in MODELS}}
)
Said = tuple[Any, Any, Any]
"""Predictions, ids and a table."""
FORMS: dict[str, Callable[[pd.DataFrame, pd.DataFrame, list[str]], Said]] = {
    "arrays": lambda own, _, models: (own[models].to_numpy().T, own["id"].tolist(), None),
    "a labelled frame": lambda own, its, models: (own.set_index("id")[models], its["id"], None),
    "a labelled frame, turned over": lambda own, its, models: (own.set_index("id")[models].T, None, its),
    "a frame with ids": lambda own, its, models: (own[["id", *models]], "id", its),
    "a frame with ids, and others": lambda own, its, models: (own[["id", *models]], its["id"].tolist(), None),
    "a mapping": lambda own, its, models: ({name: own.set_index("id")[name] for name in models}, its["id"], None),
    "a mapping, labelled twice": lambda own, its, models: (
        {name: (its if name == "m0" else own).set_index("id")[name] for name in models},
        None,
        None,
    ),
    "a list": lambda own, its, models: ([own.set_index("id")[name] for name in models], its["id"].to_numpy(), its),
    "Arrow": lambda own, its, models: (
        pa.Table.from_pandas(own[[*models, "id"]], preserve_index=False),
        its["id"],
        None,
    ),
    "narwhals": lambda own, its, models: (narwhals.from_native(own[[*models, "id"]]), None, its.to_dict("list")),
}


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.permutations(range(8)),
    st.permutations(range(8)),
    st.booleans(),
    st.permutations(MODELS),
    st.sampled_from([*FORMS]),
)
def test_any_order_of_rows_columns_and_models_gets_the_same_bits_or_is_refused(
    audits: Audits, rows: list[int], others: list[int], agree: bool, models: list[str], form: str
) -> None:
    """Who says it twice says it in one order, or gets no answer."""
    client = object.__new__(AuditClient)
    client.terms = lambda: terms(audits, "deal")  # type: ignore[method-assign]
    own = TABLE.iloc[rows]
    its = own if agree else TABLE.iloc[others]
    predictions, ids, table = FORMS[form](own, its[[*its][:: -1 if rows[0] % 2 else 1]], models)
    if form != "arrays" and rows != others and not agree:
        with pytest.raises(ValueError, match="contradict each other, the same in another order: row"):
            client._arranged(predictions, ids, table)
        return
    batch, digest = client._arranged(predictions, ids, table)
    answer = ask(audits, "deal", f"any-{next(NUMBER)}", "sp", batch, math.inf, rows_digest=digest)
    exact = ask(audits, "deal", "in-order", "sp", TABLE[MODELS].to_numpy().T, math.inf)
    assert answer.rows_compared
    assert list(batch.names) in (models, [])
    assert dict(zip(models, answer.gaps.tolist(), strict=True)) == dict(zip(MODELS, exact.gaps.tolist(), strict=True))


NUMBER = count()
