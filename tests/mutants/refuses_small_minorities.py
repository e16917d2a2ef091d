"""Refuses a metric among people of whom few are disadvantaged."""

from compliance.__main__ import main
from compliance.answers import audit_service as service
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2

KILLED_BY = "C220"

sound = service._validate


def validate(header, case):
    metric = sound(header, case)
    if min(case.records.counts(metric)) < 5:
        raise Refusal(error_pb2.REASON_MECHANISM_REFUSES)
    return metric


service._validate = validate

if __name__ == "__main__":
    main()
