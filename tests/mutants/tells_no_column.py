"""Leaves out of an answer by which protected column it is."""

from compliance.__main__ import main
from compliance.answers import audit_service as service

KILLED_BY = "C961"

sound = service._answer


def answer(*asked, **named):
    response = sound(*asked, **named)
    response.ClearField("by")
    return response


service._answer = answer

if __name__ == "__main__":
    main()
