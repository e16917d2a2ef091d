"""Begins anew where ledger and head are gone, although it has been here before."""

from compliance.__main__ import main
from compliance.deployment import serve

KILLED_BY = "C736"

serve.check_begun = lambda *_, **__: None

if __name__ == "__main__":
    main()
