"""Starts its releases' generator from the same seed whenever it is started."""

from compliance.__main__ import main
from compliance.answers import releases as release
from compliance.mechanisms.local import seeded

KILLED_BY = "C512"

DRAW = seeded(bytes(32))
release.system = lambda: DRAW

if __name__ == "__main__":
    main()
