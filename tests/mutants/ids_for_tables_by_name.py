"""Takes a table of the same name for the same request, whatever its rows are now."""

from compliance.__main__ import main
from compliance.answers import audit_service

KILLED_BY = "C994"

sound = audit_service.table_digest
audit_service.table_digest = lambda request, _: sound(request, b"")

if __name__ == "__main__":
    main()
