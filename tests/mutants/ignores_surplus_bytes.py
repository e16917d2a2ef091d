"""Ignores bytes beyond what the header says."""

from compliance.__main__ import main
from fairwall.rpc.arrays import ArrivingArray

KILLED_BY = "C206"

sound = ArrivingArray.append


def append(self, chunk):
    sound(self, chunk[: len(self._buffer) - self._filled])


ArrivingArray.append = append

if __name__ == "__main__":
    main()
