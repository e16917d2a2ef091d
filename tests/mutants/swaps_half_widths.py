"""Gives the intervals of the first model the width of the last one's, and the other way round."""

import numpy as np

from compliance.__main__ import main
from compliance.answers import audit_service

KILLED_BY = "C528"

sound = audit_service.intervals_of


def intervals(entry):
    found = []
    for low, high in sound(entry):
        half, middle = (high - low) / 2, (low + high) / 2
        half[[0, -1]] = half[[-1, 0]]
        found.append((np.maximum(middle - half, -1.0), np.minimum(middle + half, 1.0)))
    return tuple(found)


audit_service.intervals_of = intervals

if __name__ == "__main__":
    main()
