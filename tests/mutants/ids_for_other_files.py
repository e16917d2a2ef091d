"""Takes models of the same sizes for the same request, whatever is in the files."""

from compliance.__main__ import main
from compliance.answers import audit_service

KILLED_BY = "C985"

sound = audit_service.sealed_digest
audit_service.sealed_digest = lambda header, models: sound(header, [b"" for _ in models])

if __name__ == "__main__":
    main()
