"""Servers whose refusals tell of people, and servers that refuse too little."""

import time

import grpc
import numpy as np

from compliance.answers import audit_service
from compliance.answers.audits import AuditCase
from compliance.answers.groups import GroupCase
from compliance.deployment.policy.schema import DataSection
from compliance.mechanisms.noise_on_gaps import LaplaceMechanism
from compliance.records.people import Records
from fairwall.rpc import server
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2
from tests.broken import broken


def _groups():
    """Return a list that is to hold the people's groups, once people are loaded."""
    sound, groups = Records.__post_init__, []

    def loaded(self):
        sound(self)
        groups[:] = [self.protected]

    Records.__post_init__ = loaded
    return groups


@broken("C602", "Refuses a NaN about the disadvantaged for another reason than one about the advantaged.")
def refusals_depend_on_the_group():
    sound, groups = audit_service._checked, _groups()

    def checked(metric, predictions):
        if np.isnan(predictions[:, groups[0] == 0]).any():
            raise Refusal(error_pb2.REASON_PREDICTIONS_OUT_OF_RANGE)
        return sound(metric, predictions)

    audit_service._checked = checked


@broken("C602", "Says in a refusal's text which group the prediction is about.")
def refusals_name_the_group():
    sound, inner, groups, seen = server.abort, audit_service._checked, _groups(), []

    def checked(metric, predictions):
        seen[:] = [np.flatnonzero(~np.isfinite(predictions).all(axis=0))]
        return inner(metric, predictions)

    def abort(context, refusal):
        if refusal.reason == error_pb2.REASON_PREDICTIONS_NOT_FINITE:
            group = "advantaged" if groups[0][seen[0][0]] else "disadvantaged"
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"a prediction for the {group} is not a finite number")
        sound(context, refusal)

    audit_service._checked = checked
    server.abort = abort


@broken("C612", "Takes longer to refuse a prediction about one group.")
def refuses_one_group_later():
    sound, groups = audit_service._checked, _groups()

    def checked(metric, predictions):
        bad = ~np.isfinite(predictions).all(axis=0)
        if bad.any() and groups[0][bad].any():
            time.sleep(0.003)
        return sound(metric, predictions)

    audit_service._checked = checked


@broken("C602", "Tells with a refusal, where gRPC keeps details of its own, how many are disadvantaged.")
def tells_groups_in_status_details():
    sound = audit_service.AuditService.Audit

    def audit(self, request_iterator, context):
        case = next(iter(self._cases.values()))
        tell = context.set_trailing_metadata

        def also(pairs):
            tell((*pairs, ("grpc-status-details-bin", bytes([case.records.counts("sp")[0]]))))

        context.set_trailing_metadata = also
        return sound(self, request_iterator, context)

    audit_service.AuditService.Audit = audit


@broken("C608", "Tells in a refusal how many people are disadvantaged, for how many there are.")
def tells_a_group_in_a_number():
    sound = audit_service._receive

    def receive(header, metric, requests, case):
        try:
            return sound(header, metric, requests, case)
        except Refusal as refusal:
            if refusal.error.HasField("people"):
                refusal.error.people = case.records.counts("sp")[0]
            raise

    audit_service._receive = receive


@broken("C605", "Tells the caller the text of the error instead of a reason.")
def tells_what_went_wrong():
    def abort(context, refusal):
        context.abort(grpc.StatusCode.UNKNOWN, f"Refusal: {refusal.reason} in service.py")

    server.abort = abort


@broken("C604", "Refuses a model whose exact gap is large.")
def refuses_unfair_models():
    sound = LaplaceMechanism.release

    def release(self, question, facts, epsilon, delta, noise):
        if np.abs(question.gaps()).max() > 0.9:
            raise Refusal(error_pb2.REASON_MECHANISM_REFUSES)
        return sound(self, question, facts, epsilon, delta, noise)

    LaplaceMechanism.release = release


@broken("C613", "Refuses to count by group where a model accepts nobody of some group, and charges nothing for it.")
def refuses_counts_of_nobody():
    sound = GroupCase.answer

    def answer(self, developer, request_id, digest, header, predictions):
        cells, groups = self.people.cells(header.by)
        if any((np.bincount(cells, row, groups) == 0).any() for row in predictions):
            raise Refusal(error_pb2.REASON_MECHANISM_REFUSES)
        return sound(self, developer, request_id, digest, header, predictions)

    GroupCase.answer = answer


@broken("C613", "Refuses a model that accepts nobody of a group, and charges nothing for it.")
def refuses_what_favours_nobody():
    sound = AuditCase.answer

    def answer(self, developer, request_id, digest, metric, predictions, epsilon, candidates=None):
        groups = (predictions[:, self.records.protected == group] for group in (0, 1))
        if not all((of_group > 0).any(axis=1).all() for of_group in groups):
            raise Refusal(error_pb2.REASON_MECHANISM_REFUSES)
        return sound(self, developer, request_id, digest, metric, predictions, epsilon, candidates)

    AuditCase.answer = answer


@broken("C607", "Serves people among whom a group is empty, and finds out when it is asked.")
def serves_an_empty_group():
    Records.__post_init__ = lambda _: None
    Records.smallest_group = lambda *_: DataSection.model_fields["minimum_group"].metadata and 1_000_000


@broken("C609", "Serves groups that are smaller than the policy says.")
def serves_small_groups():
    Records.__post_init__ = lambda _: None
    Records.smallest_group = lambda *_: 1_000_000
