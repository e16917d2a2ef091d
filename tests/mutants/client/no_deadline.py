"""Waits for ever."""

from developer import client
from sim.conformance.reference_client import main

KILLED_BY = "K101"

client.AUDIT_SECONDS = None

if __name__ == "__main__":
    main()
