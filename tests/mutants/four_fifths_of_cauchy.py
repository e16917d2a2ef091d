"""Adds four fifths of the Cauchy noise."""

from compliance.__main__ import main
from compliance.noise.sampling import System

KILLED_BY = "C535"

sound = System.cauchy
System.cauchy = lambda self, values, scale, step: sound(self, values, scale * 0.8, step)

if __name__ == "__main__":
    main()
