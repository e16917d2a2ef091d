"""Servers that take different requests for the same, or the same request for different ones."""

import copy
from itertools import chain

import numpy as np
from blake3 import blake3

from compliance.answers import audit_service, group_service
from compliance.answers.audits import AuditCase
from compliance.ledger import Ledger
from compliance.ledger.entries import COLUMNS, record_of
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2
from tests.broken import broken


@broken("C211", "Keeps the first 32 characters of a request id.")
def cuts_request_ids():
    sound = AuditCase.answer
    AuditCase.answer = lambda self, developer, request_id, *rest, **named: sound(
        self, developer, request_id[:32], *rest, **named
    )


@broken("C211", "Takes ids that differ in spaces or case for one.")
def trims_request_ids():
    sound = AuditCase.answer

    def settle(self, developer, request_id, *rest, **named):
        return sound(self, developer, request_id.strip().lower() or "-", *rest, **named)

    AuditCase.answer = settle


@broken("C114", "Takes one developer's request id for another's.")
def global_request_ids():
    def find(self, held, request):
        select = f"SELECT {COLUMNS['entries']} FROM entries WHERE request_id = ?"  # noqa: S608
        row = self._store.db.execute(select, (request.request_id,)).fetchone()
        if row is None:
            return None
        entry = record_of("entries", row)
        if entry.request.digest != request.digest:
            raise Refusal(error_pb2.REASON_REQUEST_ID_REUSED)
        return entry

    Ledger._find = find


@broken("C219", "Remembers the id of a request that it refused.")
def refusals_use_up_ids():
    sound = audit_service.AuditService.Audit
    used = {}

    def audit(self, request_iterator, context):
        first = next(request_iterator, None)
        key = first.header.request_id if first is not None else ""
        if used.get(key):
            raise Refusal(error_pb2.REASON_REQUEST_ID_REUSED)
        try:
            return sound(self, chain([first] if first is not None else [], request_iterator), context)
        except Refusal:
            used[key] = True
            raise

    audit_service.AuditService.Audit = audit


@broken("C303", "Answers other predictions under a used id with the stored answer.")
def ids_for_other_predictions():
    audit_service.audit_digest = lambda header, _: header.SerializeToString(deterministic=True)


@broken("C303", "Looks at the first model alone when it compares requests.")
def ids_for_the_first_model():
    sound = audit_service.audit_digest
    audit_service.audit_digest = lambda header, predictions: sound(header, predictions[:1])


@broken("C321", "Compares the header and the first 64 KiB of a request with what its id was used for.")
def ids_for_the_first_bytes():
    def digest(header, predictions):
        data = bytes(predictions.data.cast("B"))
        return blake3(header.SerializeToString(deterministic=True) + data[: 1 << 16]).digest()

    audit_service.audit_digest = digest


@broken("C320", "Takes requests for the same whose models stand in another order.")
def ids_for_sorted_models():
    sound = audit_service.audit_digest
    audit_service.audit_digest = lambda header, predictions: sound(
        header, np.ascontiguousarray(np.sort(predictions, axis=0))
    )


@broken("C320", "Takes requests for the same whose predictions are the same in float32.")
def ids_for_rounded_predictions():
    sound = audit_service.audit_digest
    audit_service.audit_digest = lambda header, predictions: sound(
        header, np.ascontiguousarray(predictions.astype(np.float32))
    )


@broken("C320", "Takes requests for different whose predictions are the same numbers of another type.")
def ids_for_one_type():
    sound = audit_service.audit_digest
    audit_service.audit_digest = lambda header, predictions: (
        sound(header, predictions) + predictions.dtype.char.encode()
    )


@broken("C304", "Answers another threshold under a used id.")
def ids_for_other_thresholds():
    sound = audit_service.audit_digest

    def digest(header, predictions):
        plain = copy.deepcopy(header)
        plain.ClearField("threshold")
        return sound(plain, predictions)

    audit_service.audit_digest = digest


@broken("C320", "Takes thresholds for the same that are the same in float32.")
def ids_for_about_the_same_threshold():
    sound = audit_service.audit_digest

    def digest(header, predictions):
        other = copy.deepcopy(header)
        if other.HasField("threshold"):
            other.threshold = float(np.float32(other.threshold))
        return sound(other, predictions)

    audit_service.audit_digest = digest


@broken("C320", "Takes requests for counts for the same that ask by other attributes.")
def ids_for_other_attributes():
    sound = group_service.by_group_digest

    def digest(header, terms, predictions):
        blind = copy.deepcopy(header)
        del blind.by[:]
        return sound(blind, terms, predictions)

    group_service.by_group_digest = digest
