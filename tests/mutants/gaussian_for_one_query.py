"""Adds to a batch the Gaussian noise that one model needs."""

import math

from compliance.__main__ import main
from compliance.noise.sampling import System

KILLED_BY = "C532"

sound = System.gaussian
System.gaussian = lambda self, values, sigma, step: sound(self, values, sigma / math.sqrt(len(values)), step)

if __name__ == "__main__":
    main()
