"""Says in its terms that answers are more precise than they are."""

from compliance.__main__ import main
from compliance.answers import audit_service as service
from fairwall.wire.precision import to_message

KILLED_BY = "C530"

sound = service.AuditService.GetTerms


def terms(self, request, context):
    told = sound(self, request, context)
    told.precision.CopyFrom(to_message("float64"))
    return told


service.AuditService.GetTerms = terms

if __name__ == "__main__":
    main()
