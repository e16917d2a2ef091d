"""Tells intervals that hold the exact gap too rarely."""

from compliance.__main__ import main
from compliance.mechanisms import laplace, mechanism
from fairwall.laws.noise import Laplace

KILLED_BY = "C506"

laplace.with_interval = lambda values, law, step: mechanism.with_interval(values, Laplace(law.scale * 0.8), step)

if __name__ == "__main__":
    main()
