"""Does not say whether it counted a request's nonce in."""

from compliance.__main__ import main
from compliance.answers import audit_service

KILLED_BY = "C833"

sound = audit_service._answer


def answer(*asked, **named):
    response = sound(*asked, **named)
    response.ClearField("nonce")
    return response


audit_service._answer = answer

if __name__ == "__main__":
    main()
