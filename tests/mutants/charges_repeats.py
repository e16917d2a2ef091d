"""Charges a request again when it is sent again."""

import secrets
from dataclasses import replace

from compliance.__main__ import main
from compliance.ledger import Ledger

KILLED_BY = "C301"

settle_once = Ledger.settle


def settle(self, request, answer, *how, **room):
    with self._held(request.dataset) as held:
        repeated = self._find(held, request) is not None
    entry = settle_once(self, request, answer, *how, **room)
    if repeated:
        settle_once(
            self, replace(request, request_id=f"{request.request_id[:40]}~{secrets.token_hex(4)}"), answer, *how, **room
        )
    return entry


Ledger.settle = settle

if __name__ == "__main__":
    main()
