"""Makes request ids of four random bytes."""

import secrets

from fairwall.client import audit_client
from sim.conformance.reference_client import main

KILLED_BY = "K108"


def fresh():
    return type("id", (), {"hex": "audit-" + secrets.token_hex(4)})


audit_client.uuid = type("uuid", (), {"uuid4": staticmethod(fresh)})

if __name__ == "__main__":
    main()
