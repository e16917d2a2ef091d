"""Adds no noise where there is no gap."""

import numpy as np

from compliance.__main__ import main
from compliance.noise.sampling import System

KILLED_BY = "C508"

sound = System.laplace
System.laplace = lambda self, values, scale, step: np.where(values == 0, 0.0, sound(self, values, scale, step))

if __name__ == "__main__":
    main()
