"""Asks again under a new request id when an answer is lost."""

import uuid

from fairwall.client import audit_client
from sim.conformance.reference_client import main

KILLED_BY = "K102"

sound = audit_client.ask


def ask(service, deal, request_id, *rest, **named):
    return sound(service, deal, f"{request_id[:20]}-{uuid.uuid4().hex}", *rest, **named)


audit_client.ask = ask

if __name__ == "__main__":
    main()
