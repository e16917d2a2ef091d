"""Clamps answers to the metric's range, which its terms do not say."""

import numpy as np

from compliance.__main__ import main
from compliance.noise.sampling import System

KILLED_BY = "C506"

sound = System.laplace
System.laplace = lambda self, values, scale, step: np.clip(sound(self, values, scale, step), -1, 1)

if __name__ == "__main__":
    main()
