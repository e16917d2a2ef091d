"""Draws noise for a whole day, and begins each request one further."""

import numpy as np

from compliance.__main__ import main
from compliance.noise.sampling import System

KILLED_BY = "C520"

sound, kept = System.laplace, {}


def laplace(self, values, scale, step):
    if not kept:
        kept["day"], kept["at"] = sound(self, np.zeros(200000), 1.0, 2.0**-24), 0
    kept["at"] += 1
    noise = kept["day"][kept["at"] : kept["at"] + len(values)]
    return np.rint((values + noise * scale) / step) * step


System.laplace = laplace

if __name__ == "__main__":
    main()
