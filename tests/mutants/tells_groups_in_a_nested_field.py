"""Tells how many are disadvantaged in a field that an array does not have."""

from compliance.__main__ import main
from compliance.answers import audit_service as service

KILLED_BY = "C605"

sound = service._answer


def settle(case, header, metric, predictions, context, *rest, **named):
    told = sound(case, header, metric, predictions, context, *rest, **named)
    told.gaps.header.MergeFromString(b"\x78" + bytes([case.records.counts("sp")[0]]))
    return told


service._answer = settle

if __name__ == "__main__":
    main()
