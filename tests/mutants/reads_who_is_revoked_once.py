"""Reads the list of revoked certificates when it is started, and never again."""

from compliance.__main__ import main
from fairwall.rpc import revoked

KILLED_BY = "C130"

sound, seen = revoked._stamp, {}
revoked._stamp = lambda path: seen.setdefault(path, sound(path))

if __name__ == "__main__":
    main()
