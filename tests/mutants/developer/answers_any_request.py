"""Answers compliance for requests that it has never sent."""

from developer.service import ModelService
from sim.conformance.reference_developer import main

KILLED_BY = "D103"

ModelService._under_way = lambda self, _: next(iter(self._audited.values()))

if __name__ == "__main__":
    main()
