"""Adds half of the noise."""

from compliance.__main__ import main
from compliance.noise.sampling import System

KILLED_BY = "C507"

sound = System.laplace
System.laplace = lambda self, values, scale, step: sound(self, values, scale / 2, step)

if __name__ == "__main__":
    main()
