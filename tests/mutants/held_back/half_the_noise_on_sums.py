"""Adds three quarters of the noise to sums, once the size is known."""

from compliance.__main__ import main
from compliance.noise.sampling import System

KILLED_BY = "C544"

sound = System.gaussian
System.gaussian = lambda self, values, sigma, step: sound(self, values, sigma * (1 if len(values) == 1 else 0.75), step)

if __name__ == "__main__":
    main()
