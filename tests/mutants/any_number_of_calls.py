"""Runs as many calls of a party as there are."""

from compliance.__main__ import main
from fairwall.rpc import server

KILLED_BY = "C705"

server.CALLS_PER_CALLER = 1000

if __name__ == "__main__":
    main()
