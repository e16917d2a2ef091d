"""Charges for predictions that it refuses."""

import secrets

import numpy as np

from compliance.__main__ import main
from compliance.answers import audit_service as service
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2

KILLED_BY = "C201"

sound = service._receive


def receive(header, metric, requests, case):
    try:
        return sound(header, metric, requests, case)
    except Refusal as refusal:
        if refusal.reason == error_pb2.REASON_PREDICTIONS_NOT_FINITE:
            nothing = np.zeros((1, case.records.people))
            case.answer("alice", secrets.token_hex(8), b"", metric, nothing, header.epsilon)
        raise


service._receive = receive

if __name__ == "__main__":
    main()
