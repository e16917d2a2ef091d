"""Numbers its requests."""

from fairwall.client import audit_client
from sim.conformance.reference_client import main

KILLED_BY = "K108"

audit_client.uuid = type("uuid", (), {"uuid4": staticmethod(lambda: type("id", (), {"hex": "request-1"}))})

if __name__ == "__main__":
    main()
