"""Takes a full disk for a fault of its own."""

from compliance.__main__ import main
from compliance.answers import audit_service as service

KILLED_BY = "C730"

service.LedgerUnavailable = type("Nothing", (Exception,), {})

if __name__ == "__main__":
    main()
