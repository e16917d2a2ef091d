"""Seals the head of a new ledger where the old one is gone."""

from compliance.__main__ import main
from compliance.deployment import serve

KILLED_BY = "C735"


def check(place, key, *, new):
    if not place.ledger.exists():
        place.seal.unlink(missing_ok=True)


serve.check_begun = check

if __name__ == "__main__":
    main()
