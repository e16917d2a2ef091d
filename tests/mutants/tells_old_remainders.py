"""Tells with a repeat what was left when it was first answered, and not what is left now."""

from compliance.__main__ import main
from compliance.answers import audit_service as service

KILLED_BY = "C309"

sound = service._answer


def settle(*asked, **named):
    answer = sound(*asked, **named)
    answer.ClearField("epsilon_remaining_now")
    return answer


service._answer = settle

if __name__ == "__main__":
    main()
