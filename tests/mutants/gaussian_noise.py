"""Adds Gaussian noise of the same mean size, and says Laplace."""

import math

from compliance.__main__ import main
from compliance.noise.sampling import System

KILLED_BY = "C506"

System.laplace = lambda self, values, scale, step: self.gaussian(values, scale * math.sqrt(math.pi / 2), step)

if __name__ == "__main__":
    main()
