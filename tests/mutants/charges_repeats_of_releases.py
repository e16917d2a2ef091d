"""Charges a release again when it is asked for again."""

import secrets
from dataclasses import replace

from compliance.__main__ import main
from compliance.ledger import Ledger

KILLED_BY = "C301"


def settle(self, request, answer, *how, sound=Ledger.settle, **room):
    with self._held(request.dataset) as held:
        is_known = self._find(held, request) is not None
    entry = sound(self, request, answer, *how, **room)
    if is_known and request.metric == "release":
        sound(self, replace(request, request_id=f"{request.request_id}~{secrets.token_hex(4)}"), answer, *how, **room)
    return entry


Ledger.settle = settle

if __name__ == "__main__":
    main()
