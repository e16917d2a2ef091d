"""Begins anew where ledger and head are gone, although it has been here before."""

import compliance.__main__ as service_main
from compliance.__main__ import main

KILLED_BY = "C736"

service_main._check_begun = lambda *_, **__: None

if __name__ == "__main__":
    main()
