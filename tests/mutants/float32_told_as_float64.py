"""Writes float32 answers down in float64."""

from compliance.__main__ import main
from compliance.answers import audits as case

KILLED_BY = "C533"

sound = case._rounded
case._rounded = lambda release, precision: release if precision == "float32" else sound(release, precision)

if __name__ == "__main__":
    main()
