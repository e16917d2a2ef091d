"""Tells the size of a group in its terms."""

from compliance.__main__ import main
from compliance.answers import audit_service as service

KILLED_BY = "C601"

sound = service.AuditService.GetTerms


def terms(self, request, context):
    told = sound(self, request, context)
    told.queries_max -= self._cases[request.deal_id].records.counts("sp")[0]
    return told


service.AuditService.GetTerms = terms

if __name__ == "__main__":
    main()
