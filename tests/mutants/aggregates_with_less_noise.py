"""Adds the noise for as many blocks as there could be, not as there are."""

from compliance.__main__ import main
from compliance.noise.sampling import System

KILLED_BY = "C536"

sound = System.laplace
System.laplace = lambda self, values, scale, step: sound(self, values, scale * 0.75, step)

if __name__ == "__main__":
    main()
