"""Writes float32 answers down in float64."""

from compliance import case
from compliance.__main__ import main

KILLED_BY = "C533"

sound = case._rounded
case._rounded = lambda release, precision: release if precision == "float32" else sound(release, precision)

if __name__ == "__main__":
    main()
