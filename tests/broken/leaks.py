"""Servers that leak groups or exact gaps beside their answers: in messages, metadata, logs, files and times."""

import os
import struct
import tempfile
import time

import numpy as np

from compliance.answers import audit_service, group_service
from compliance.answers.groups import GroupCase
from compliance.deployment import accounts, serve
from compliance.mechanisms.mechanism import BatchQuestion
from fairwall.rpc import server
from tests.broken import broken


def _before_answers(leak):
    """Call a function with the context and the exact gaps before each batch is answered."""
    sound = audit_service._answer

    def settle(case, header, metric, predictions, context, *rest, **named):
        leak(context, BatchQuestion(metric, predictions, case.records).gaps())
        return sound(case, header, metric, predictions, context, *rest, **named)

    audit_service._answer = settle


@broken("C601", "Tells the size of a group in its terms.")
def terms_tell_the_groups():
    sound = audit_service.AuditService.GetTerms

    def terms(self, request, context):
        told = sound(self, request, context)
        told.queries_max -= self._cases[request.deal_id].records.counts("sp")[0]
        return told

    audit_service.AuditService.GetTerms = terms


@broken("C605", "Puts the exact gap into a field that the protocol does not have.")
def tells_exact_gaps_in_a_field():
    sound = audit_service._answer

    def settle(case, header, metric, predictions, context, *rest, **named):
        exact = BatchQuestion(metric, predictions, case.records).gaps()[:1].tobytes()
        answer = sound(case, header, metric, predictions, context, *rest, **named)
        return type(answer).FromString(answer.SerializeToString() + bytes([15 << 3 | 2, len(exact)]) + exact)

    audit_service._answer = settle


@broken("C605", "Tells how many are disadvantaged in a field that an array does not have.")
def tells_groups_in_a_nested_field():
    sound = audit_service._answer

    def settle(case, header, metric, predictions, context, *rest, **named):
        told = sound(case, header, metric, predictions, context, *rest, **named)
        told.gaps.header.MergeFromString(b"\x78" + bytes([case.records.counts("sp")[0]]))
        return told

    audit_service._answer = settle


@broken("C605", "Writes what was charged twice into a message: first how many are disadvantaged, then the charge.")
def charges_twice_in_one_message():
    sound = server._encoder

    def encoder(handler):
        encode = sound(handler)
        return lambda message: struct.pack("<Bd", 0x11, 27.0) + encode(message)

    server._encoder = encoder


@broken("C605", "Puts the exact gap into an answer's metadata.")
def tells_exact_gaps_beside():
    _before_answers(lambda context, gaps: context.set_trailing_metadata((("x-debug", str(gaps[0])),)))


@broken("C605", "Tells how large the first gap is in a header that looks like a timing.")
def tells_gaps_in_server_timing():
    def leak(context, gaps):
        context.send_initial_metadata((("server-timing", f"audit;dur={abs(gaps[0]) * 1000:.3f}"),))

    _before_answers(leak)


@broken("C606", "Writes the exact gaps into its log.")
def logs_exact_gaps():
    _before_answers(lambda _, gaps: audit_service.LOG.info("gaps %s", gaps.tolist()))


@broken("C610", "Writes the exact counts by group into its log.")
def logs_counts_by_group():
    sound = GroupCase.answer

    def settle(grouped, developer, request_id, digest, header, predictions):
        cell, count = grouped.people.cells(tuple(header.by))
        group_service.LOG.info("counted %s", np.bincount(cell, minlength=count).tolist())
        return sound(grouped, developer, request_id, digest, header, predictions)

    GroupCase.answer = settle


@broken("C610", "Logs how many people each group has.")
def logs_the_sizes_of_groups():
    sound = accounts.case_of

    def case_of(data, *rest, **named):
        n1 = int(data.first.protected.sum())
        serve.LOG.info("%d and %d people", n1, data.first.people - n1)
        return sound(data, *rest, **named)

    accounts.case_of = case_of


@broken("C610", "Keeps the exact gaps of its batches in a temporary file, where the service may write one.")
def keeps_exact_gaps_in_a_file():
    def leak(_, gaps):
        with tempfile.NamedTemporaryFile(suffix=".npy", dir=os.environ["SQLITE_TMPDIR"], delete=False) as file:
            np.save(file, gaps)

    _before_answers(leak)


@broken("C610", "Keeps the groups, a bit a person, beside its ledger.")
def packs_groups_beside_its_ledger():
    sound = serve.open_ledger

    def ledger_of(policy, data):
        found = sound(policy, data)
        packed = np.packbits(data[0].first.protected).tobytes()
        (policy.deployment.ledger.parent / "cache").write_bytes(packed)
        return found

    serve.open_ledger = ledger_of


@broken("C611", "Takes eight milliseconds longer where more people are disadvantaged.")
def slower_for_larger_groups():
    sound = audit_service._answer

    def settle(case, *asked, **named):
        n0, n1 = case.records.counts("sp")
        time.sleep(0.008 * (n0 > n1))
        return sound(case, *asked, **named)

    audit_service._answer = settle


@broken("C611", "Takes four milliseconds longer for a gap of 1.")
def takes_longer_for_larger_gaps():
    _before_answers(lambda _, gaps: time.sleep(0.004 * abs(gaps).max()))
