"""Reads a URI up to the end of its line."""

import re

from compliance.__main__ import main
from fairwall.rpc import identity

KILLED_BY = "C116"

identity._URI = type("Pattern", (), {"fullmatch": re.compile(identity._URI.pattern + "$").match})

if __name__ == "__main__":
    main()
