"""Charges a request again when it is sent again."""

import secrets
from dataclasses import replace

from compliance.__main__ import main
from compliance.ledger import Ledger

KILLED_BY = "C301"


def settle(self, request, answer):
    with self._transaction():
        found = self._find(request)
        if found is None:
            entry = self._charge(request, answer)
        else:
            entry = found
            self._charge(replace(request, request_id=f"{request.request_id}~{secrets.token_hex(4)}"), answer)
    self._seal_head()
    return entry


Ledger.settle = settle

if __name__ == "__main__":
    main()
