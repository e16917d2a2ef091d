"""Tells what is left with nine digits."""

from compliance.__main__ import main
from compliance.answers import audit_service as service

KILLED_BY = "C420"

sound = service._answer


def settle(case, header, metric, predictions, context, *rest, **named):
    told = sound(case, header, metric, predictions, context, *rest, **named)
    told.epsilon_remaining = float(f"{told.epsilon_remaining:.9g}")
    return told


service._answer = settle

if __name__ == "__main__":
    main()
