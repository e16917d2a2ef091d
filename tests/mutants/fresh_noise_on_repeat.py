"""Draws new noise when a request is sent again."""

from dataclasses import replace

from compliance.__main__ import main
from compliance.ledger import Ledger

KILLED_BY = "C301"


def settle(self, request, answer, *how, sound=Ledger.settle, **room):
    entry = sound(self, request, answer, *how, **room)
    return replace(entry, reply=answer(()))


Ledger.settle = settle

if __name__ == "__main__":
    main()
