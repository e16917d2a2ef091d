"""Runs as many calls of a party as there are."""

from fairwall.rpc import server
from sim.conformance.reference_developer import main

KILLED_BY = "D110"

server.CALLS_PER_CALLER = 80

if __name__ == "__main__":
    main()
