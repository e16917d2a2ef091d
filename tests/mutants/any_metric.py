"""Answers metrics that the policy does not allow."""

from dataclasses import replace

from compliance.__main__ import main
from compliance.answers import audit_service as service
from fairwall.laws.metric import METRICS

KILLED_BY = "C214"

sound = service._validate


def validate(header, case):
    wide = replace(case, records=replace(case.records, metrics=tuple(METRICS)))
    return sound(header, wide)


service._validate = validate

if __name__ == "__main__":
    main()
