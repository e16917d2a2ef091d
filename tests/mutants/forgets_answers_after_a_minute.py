"""Remembers for a minute what it has answered."""

import time
from dataclasses import replace

from compliance.__main__ import main
from compliance.ledger import Ledger

KILLED_BY = "C739"

sound = Ledger.settle
first = {}


def settle(self, request, answer, *how, **room):
    age = time.monotonic() - first.setdefault((request.developer, request.digest), time.monotonic())
    return sound(
        self, replace(request, request_id=request.request_id + "'") if age > 60 else request, answer, *how, **room
    )


Ledger.settle = settle

if __name__ == "__main__":
    main()
