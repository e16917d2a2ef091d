"""Answers for its data set whatever deal is asked about."""

from compliance.__main__ import main
from compliance.answers import audit_service as service

KILLED_BY = "C212"

service.AuditService._case = lambda self, *_: next(iter(self._cases.values()))

if __name__ == "__main__":
    main()
