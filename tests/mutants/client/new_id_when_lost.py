"""Asks again under a new request id when an answer is lost."""

import uuid

from fairwall.client import gaps
from sim.conformance.reference_client import main

KILLED_BY = "K102"

sound = gaps.ask


def ask(service, deal_id, request_id, *rest, **named):
    return sound(service, deal_id, f"{request_id[:20]}-{uuid.uuid4().hex}", *rest, **named)


gaps.ask = ask

if __name__ == "__main__":
    main()
