"""Puts the name of its machine before a request id."""

import socket
import uuid

from fairwall.client import audit_client
from sim.conformance.reference_client import main

KILLED_BY = "K108"


def fresh():
    return type("id", (), {"hex": f"{socket.gethostname()[:24]}-{uuid.uuid4().hex}"})


audit_client.uuid = type("uuid", (), {"uuid4": staticmethod(fresh)})

if __name__ == "__main__":
    main()
