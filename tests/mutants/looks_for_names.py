"""Looks for a name at the end of a URI."""

import re

from compliance.__main__ import main
from fairwall.rpc import identity

KILLED_BY = "C116"

identity._URI = type("Pattern", (), {"fullmatch": re.compile(identity._URI.pattern + r"\Z").search})

if __name__ == "__main__":
    main()
