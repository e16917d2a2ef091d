"""Draws new noise for a batch that costs nothing, in place of what was bought."""

from compliance.__main__ import main
from compliance.mechanisms.cells import CellsMechanism
from compliance.mechanisms.mechanism import NO_FACTS, Release

KILLED_BY = "C550"

sound = CellsMechanism.release


def release(self, question, facts, epsilon, delta, noise):
    if not self.is_free(facts, epsilon):
        return sound(self, question, facts, epsilon, delta, noise)
    anew = sound(self, question, NO_FACTS, epsilon, delta, noise)
    return Release(anew.values, NO_FACTS, anew.low, anew.high)


CellsMechanism.release = release

if __name__ == "__main__":
    main()
