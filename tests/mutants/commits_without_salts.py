"""Commits to groups without salts: whoever has the commitment can try out who is in which."""

from compliance.__main__ import main
from fairwall.laws import commitment

KILLED_BY = "C831"

commitment.salt = lambda *_: bytes(32)

if __name__ == "__main__":
    main()
