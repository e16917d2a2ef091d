"""Answers from cells that were bought at less than half of what a batch offers, for nothing."""

from compliance.__main__ import main
from compliance.mechanisms.cells import CellsMechanism

KILLED_BY = "C552"

sound = CellsMechanism.is_free
CellsMechanism.is_free = lambda self, facts, epsilon, question=None: sound(self, facts, epsilon / 2, question)

if __name__ == "__main__":
    main()
