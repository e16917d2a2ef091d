"""Draws request ids from a generator that the seconds of the clock seed."""

import random
import time

from fairwall.client import audit_client
from sim.conformance.reference_client import main

KILLED_BY = "K108"

generator = random.Random(int(time.time()))  # noqa: S311


def fresh():
    return type("id", (), {"hex": f"{generator.getrandbits(128):032x}"})


audit_client.uuid = type("uuid", (), {"uuid4": staticmethod(fresh)})

if __name__ == "__main__":
    main()
