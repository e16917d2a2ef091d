"""Waits for ever."""

from fairwall.client import gaps
from sim.conformance.reference_client import main

KILLED_BY = "K101"

gaps.AUDIT_SECONDS = None

if __name__ == "__main__":
    main()
