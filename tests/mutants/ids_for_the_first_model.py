"""Looks at the first model alone when it compares requests."""

from compliance.__main__ import main
from compliance.answers import audit_service as service

KILLED_BY = "C303"

sound = service.audit_digest
service.audit_digest = lambda header, predictions: sound(header, predictions[:1])

if __name__ == "__main__":
    main()
