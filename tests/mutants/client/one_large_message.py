"""Sends all predictions in one message."""

from fairwall.rpc import arrays
from sim.conformance.reference_client import main

KILLED_BY = "K101"

arrays.CHUNK_BYTES = 1 << 40

if __name__ == "__main__":
    main()
