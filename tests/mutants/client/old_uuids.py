"""Makes request ids of the first kind: the time, and the machine's address."""

import uuid

from fairwall.client import audit_client
from sim.conformance.reference_client import main

KILLED_BY = "K108"

audit_client.uuid = type("uuid", (), {"uuid4": staticmethod(uuid.uuid1)})

if __name__ == "__main__":
    main()
