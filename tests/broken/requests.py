"""Servers that answer outside their terms, or whose terms are wrong."""

import copy
import math
from dataclasses import replace

from compliance.answers import audit_service, group_service
from compliance.answers.audits import AuditCase
from fairwall.laws.metrics.metric import METRICS
from fairwall.rpc import server
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2
from tests.broken import broken


@broken("C212", "Answers for its data set whatever deal is asked about.")
def any_deal():
    audit_service.AuditService._case = lambda self, *_: next(iter(self._cases.values()))


@broken("C214", "Answers metrics that the policy does not allow.")
def any_metric():
    sound = audit_service._validate

    def validate(header, case):
        wide = replace(case, records=replace(case.records, metrics=tuple(METRICS)))
        return sound(header, wide)

    audit_service._validate = validate


@broken("C215", "Lets a batch cost more than the policy allows it.")
def any_epsilon():
    sound = AuditCase.__init__

    def wide(self, *args, **kwargs):
        sound(self, *args, **{**kwargs, "epsilon_max": math.inf})

    AuditCase.__init__ = wide


@broken("C953", "Answers audits whatever rows the caller says that they are about.")
def any_rows():
    audit_service._check_rows = lambda *_: None


@broken("C953", "Counts by group whatever rows the caller says that they are.")
def counts_other_rows_by_group():
    def received(header, *rest, **options):
        blind = copy.deepcopy(header)
        blind.rows_digest = b""
        return audit_service.received(blind, *rest, **options)

    group_service.received = received


@broken("C220", "Refuses a metric among people of whom few are disadvantaged.")
def refuses_small_minorities():
    sound = audit_service._validate

    def validate(header, case):
        metric = sound(header, case)
        if min(case.records.counts(metric)) < 5:
            raise Refusal(error_pb2.REASON_MECHANISM_REFUSES)
        return metric

    audit_service._validate = validate


@broken("C220", "Allows smaller batches where a group is small.")
def smaller_batches_of_small_groups():
    sound = audit_service.AuditService.GetTerms

    def terms(self, request, context):
        told = sound(self, request, context)
        if self._cases[request.deal_id].records.smallest_group("sp") < 10:
            told.queries_max //= 2
        return told

    audit_service.AuditService.GetTerms = terms


@broken(
    "C218", "Says in its terms for the table, and for each of its public columns, what the ids alone have for a digest."
)
def terms_of_ids_alone():
    sound = audit_service._rows_terms

    def terms(case):
        told = sound(case)
        if told is not None and told.table_digest:
            told.table_digest = told.ids_digest
            told.column_digests[:] = [told.ids_digest] * len(told.column_digests)
        return told

    audit_service._rows_terms = terms


@broken("C801", "Answers methods of another version as if they were its own.")
def answers_other_versions():
    sound = server._Gate.intercept_service

    def intercept(self, continuation, handler_call_details):
        method = handler_call_details.method.replace(".v2.", ".v1.")
        changed = handler_call_details._replace(method=method)
        return sound(self, continuation, changed)

    server._Gate.intercept_service = intercept
