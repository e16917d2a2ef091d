"""Answers, and charges, a call that was cancelled after its last byte."""

from compliance.__main__ import main
from fairwall.rpc import server

KILLED_BY = "C717"

server._to_the_end = lambda arriving: iter(arriving)

if __name__ == "__main__":
    main()
