"""Charges releases to the budget of audits, too."""

from dataclasses import replace

from compliance.__main__ import main
from compliance.ledger import Ledger
from compliance.ledger.accountant import Neighbours

KILLED_BY = "C908"


def settle(self, request, answer, *how, sound=Ledger.settle, **room):
    entry = sound(self, request, answer, *how, **room)
    if request.metric == "release":
        other = f"{request.request_id[-40:]}~audits"
        dataset = request.dataset.removesuffix("-release")
        sound(
            self,
            replace(request, request_id=other, dataset=dataset, neighbours=Neighbours.A_FLIP),
            answer,
            *how,
            **room,
        )
    return entry


Ledger.settle = settle

if __name__ == "__main__":
    main()
