"""Counts nobody's calls."""

from compliance.__main__ import main
from fairwall.rpc.quota import Meter

KILLED_BY = "C760"

Meter._check = lambda _: None

if __name__ == "__main__":
    main()
