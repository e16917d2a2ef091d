"""Draws each side of a cube from a cube of its own."""

import numpy as np

from compliance.__main__ import main
from compliance.noise.sampling import System

KILLED_BY = "C547"

sound = System.cube
System.cube = lambda self, values, scale, step, least=0: np.concatenate(
    [sound(self, values[k : k + 1], scale, step, least) for k in range(len(values))]
)

if __name__ == "__main__":
    main()
