"""Puts the exact gap into a field that the protocol does not have."""

from compliance.__main__ import main
from compliance.answers import audit_service as service
from compliance.mechanisms.mechanism import Question

KILLED_BY = "C605"

sound = service._answer


def settle(case, header, metric, predictions, context, *rest, **named):
    exact = Question(metric, predictions, case.records).gaps()[:1].tobytes()
    answer = sound(case, header, metric, predictions, context, *rest, **named)
    return type(answer).FromString(answer.SerializeToString() + bytes([15 << 3 | 2, len(exact)]) + exact)


service._answer = settle

if __name__ == "__main__":
    main()
