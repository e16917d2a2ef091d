"""Takes requests for the same whose predictions travel as another type."""

from compliance.__main__ import main
from compliance.answers import audit_service as service

KILLED_BY = "C320"

sound = service.audit_digest


def digest(header, predictions):
    other = type(header)()
    other.CopyFrom(header)
    other.predictions.element_type = 0
    return sound(other, predictions)


service.audit_digest = digest

if __name__ == "__main__":
    main()
