"""The catalogue of refusals is closed, complete, and made of fixed sentences."""

from __future__ import annotations

import grpc

from fairwall.rpc.errors import CATALOGUE, Refusal, reason_of
from fairwall.wire.v1.error_pb2 import REASON_BUDGET_EXHAUSTED, REASON_UNSPECIFIED, AuditError, Error, Reason

REASONS = [reason for reason in Reason.values() if reason != REASON_UNSPECIFIED]


def test_the_catalogue_has_every_reason_but_none_given() -> None:
    assert sorted(CATALOGUE) == sorted(REASONS)


def test_a_reason_has_a_status_that_is_no_success_and_a_sentence_of_one_line() -> None:
    # A client that sees one of these would take a refusal for a broken connection, a timeout or its own doing.
    confusing = {"OK", "UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "UNKNOWN", "UNIMPLEMENTED"}
    for status, sentence in CATALOGUE.values():
        assert isinstance(status, grpc.StatusCode)
        assert status.name not in confusing
        assert sentence.isascii(), sentence
        assert sentence.isprintable(), sentence
        assert sentence == sentence.strip() != ""
        assert not set(sentence) & set("{}%"), sentence


def test_no_two_reasons_share_a_sentence() -> None:
    assert len({sentence for _, sentence in CATALOGUE.values()}) == len(CATALOGUE)


def test_a_refusal_says_its_sentence_and_keeps_its_reason() -> None:
    refusal = Refusal(REASON_BUDGET_EXHAUSTED)
    assert str(refusal) == "the remaining privacy budget does not cover this batch"
    assert refusal.reason == REASON_BUDGET_EXHAUSTED


def test_the_numbers_of_a_refusal_are_fields_and_no_part_of_its_text() -> None:
    refusal = Refusal(AuditError(reason=REASON_BUDGET_EXHAUSTED, epsilon_remaining=0.25, epsilon_needed=0.5))
    assert str(refusal) == str(Refusal(REASON_BUDGET_EXHAUSTED))
    assert refusal.reason == REASON_BUDGET_EXHAUSTED
    # Whoever knows nothing of numbers reads the reason.
    assert Error.FromString(refusal.error.SerializeToString()).reason == REASON_BUDGET_EXHAUSTED


def test_an_error_that_no_service_sent_has_no_reason() -> None:
    assert reason_of(grpc.RpcError()) == REASON_UNSPECIFIED
