"""Draws noise ahead, and gives every draw to two requests."""

import numpy as np

from compliance.__main__ import main
from compliance.noise.sampling import System

KILLED_BY = "C520"

sound, drawn = System.laplace, {}


def laplace(self, values, scale, step):
    if (kept := drawn.pop(len(values), None)) is None:
        drawn[len(values)] = kept = sound(self, np.zeros(len(values)), 1.0, 2.0**-24)
    return np.rint((values + kept * scale) / step) * step


System.laplace = laplace

if __name__ == "__main__":
    main()
