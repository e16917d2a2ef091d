"""Draws noise again until it fits, and takes that for free."""

from compliance.__main__ import main
from compliance.mechanisms import bounding

KILLED_BY = "C531"

bounding.truncated_scale = lambda distance, _, step, epsilon: distance * step / epsilon

if __name__ == "__main__":
    main()
