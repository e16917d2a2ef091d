"""Makes request ids of the first kind: the time, and the machine's address."""

import uuid

from developer import client
from sim.conformance.reference_client import main

KILLED_BY = "K108"

client.uuid = type("uuid", (), {"uuid4": staticmethod(uuid.uuid1)})

if __name__ == "__main__":
    main()
