"""Waits for ever."""

from fairwall.client import audit_client
from sim.conformance.reference_client import main

KILLED_BY = "K101"

audit_client.AUDIT_SECONDS = None

if __name__ == "__main__":
    main()
