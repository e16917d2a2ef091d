"""Takes the developer's name from the metadata."""

from compliance.__main__ import main
from compliance.answers import audit_service as service

KILLED_BY = "C110"

sound = service.developer_of
service.developer_of = lambda context: dict(context.invocation_metadata()).get("x-developer") or sound(context)

if __name__ == "__main__":
    main()
