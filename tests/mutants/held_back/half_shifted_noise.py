"""Gives the second half of a batch the opposite of the first half's noise."""

import numpy as np

from compliance.__main__ import main
from compliance.noise.sampling import System

KILLED_BY = "C506"

sound = System.laplace


def laplace(self, values, scale, step):
    noise = sound(self, np.zeros((len(values) + 1) // 2), scale, step)
    return values + np.concatenate([noise, -noise])[: len(values)]


System.laplace = laplace

if __name__ == "__main__":
    main()
