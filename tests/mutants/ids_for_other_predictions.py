"""Answers other predictions under a used id with the stored answer."""

from compliance.__main__ import main
from compliance.answers import audit_service as service

KILLED_BY = "C303"

service.audit_digest = lambda header, _: header.SerializeToString(deterministic=True)

if __name__ == "__main__":
    main()
