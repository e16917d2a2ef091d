"""Draws the noise on cells for 16 times the epsilon that it charges."""

from compliance.__main__ import main
from compliance.noise.sampling import System

KILLED_BY = "C548"

sound = System.laplace
# Noise on a grid of 1 is that on whole numbers.
System.laplace = lambda self, values, scale, step: sound(self, values, scale / 16 if step == 1 else scale, step)

if __name__ == "__main__":
    main()
