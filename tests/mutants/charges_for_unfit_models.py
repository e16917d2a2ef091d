"""Charges for models that it refuses for what they are."""

import secrets

import numpy as np

from compliance.__main__ import main
from compliance.answers.audit_service import AuditService
from fairwall.rpc.errors import Refusal
from fairwall.wire.metrics import name_of
from fairwall.wire.v1 import error_pb2

KILLED_BY = "C982"

sound = AuditService.AuditSealed
UNFIT = (error_pb2.REASON_MODEL_MALFORMED, error_pb2.REASON_MODEL_OPERATOR, error_pb2.REASON_MODEL_SHAPE)


def sealed(self, request_iterator, context):
    heard = []

    def listened():
        for request in request_iterator:
            heard.append(request)
            yield request

    try:
        return sound(self, listened(), context)
    except Refusal as refusal:
        if refusal.reason in UNFIT:
            header, case = heard[0].header, self._cases[heard[0].header.deal_id]
            nothing = np.zeros((1, case.people))
            case.answer("alice", secrets.token_hex(8), b"", name_of(header.metric), nothing, header.epsilon)
        raise


AuditService.AuditSealed = sealed

if __name__ == "__main__":
    main()
