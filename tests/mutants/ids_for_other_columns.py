"""Answers gaps by another protected column under a used id."""

from compliance.__main__ import main
from compliance.answers import audit_service as service

KILLED_BY = "C963"

sound = service.audit_digest


def digest(header, predictions):
    plain = type(header)()
    plain.CopyFrom(header)
    plain.ClearField("by")
    return sound(plain, predictions)


service.audit_digest = digest

if __name__ == "__main__":
    main()
