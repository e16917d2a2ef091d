"""Rounds what is left now, in the answer to a repeat."""

from compliance.__main__ import main
from compliance.answers import audit_service as service

KILLED_BY = "C420"

sound = service._answer


def settle(case, header, metric, predictions, context, *rest, **named):
    told = sound(case, header, metric, predictions, context, *rest, **named)
    if told.HasField("epsilon_remaining_now"):
        told.epsilon_remaining_now = round(told.epsilon_remaining_now, 3)
    return told


service._answer = settle

if __name__ == "__main__":
    main()
