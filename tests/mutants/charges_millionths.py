"""Rounds charges to a millionth."""

from dataclasses import replace

from compliance.__main__ import main
from compliance.ledger import Ledger

KILLED_BY = "C420"

sound = Ledger.settle


def settle(self, request, answer, *how, **room):
    loss = request.loss
    if loss.epsilon > 1e-6:
        loss = replace(loss, epsilon=round(loss.epsilon, 6))
    return sound(self, replace(request, loss=loss), answer, *how, **room)


Ledger.settle = settle

if __name__ == "__main__":
    main()
