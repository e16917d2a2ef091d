"""Makes a request id of the time and of its process."""

import hashlib
import os
import time

from fairwall.client import audit_client
from sim.conformance.reference_client import main

KILLED_BY = "K108"


def fresh():
    return type("id", (), {"hex": hashlib.sha256(f"{time.time_ns()}{os.getpid()}".encode()).hexdigest()})


audit_client.uuid = type("uuid", (), {"uuid4": staticmethod(fresh)})

if __name__ == "__main__":
    main()
