"""Allows smaller batches where a group is small."""

from compliance.__main__ import main
from compliance.answers import audit_service as service

KILLED_BY = "C220"

sound = service.AuditService.GetTerms


def terms(self, request, context):
    told = sound(self, request, context)
    if self._cases[request.deal_id].records.smallest_group("sp") < 10:
        told.queries_max //= 2
    return told


service.AuditService.GetTerms = terms

if __name__ == "__main__":
    main()
