"""Gives noise the sign of the gap a little more often than the other one."""

import numpy as np

from compliance.__main__ import main
from compliance.noise.sampling import System

KILLED_BY = "C520"

sound = System.laplace


def laplace(self, values, scale, step):
    noise = sound(self, np.zeros(len(values)), scale, step)
    turn = (np.random.default_rng().random(len(values)) < 0.25) & (np.sign(noise) != np.sign(values))
    return np.rint(values / step) * step + np.where(turn & (values != 0), -noise, noise)


System.laplace = laplace

if __name__ == "__main__":
    main()
