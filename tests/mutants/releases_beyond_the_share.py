"""Looks at the whole budget of those whose attributes are released, not at the developer's share of it."""

from compliance.__main__ import main
from compliance.ledger import Ledger

KILLED_BY = "C402"


def allocate(self, dataset, developer, epsilon, delta=0.0, sound=Ledger.allocate):
    if dataset.endswith("-release"):
        with self._held(dataset) as held:
            epsilon = held.books.budget(dataset).epsilon
    sound(self, dataset, developer, epsilon, delta)


Ledger.allocate = allocate

if __name__ == "__main__":
    main()
