"""Draws twenty thousand noises when it is first asked, and takes all noise from these."""

import numpy as np

from compliance.__main__ import main
from compliance.noise.sampling import System

KILLED_BY = "C523"

sound, pool, random = System.laplace, [], np.random.default_rng()


def laplace(self, values, scale, step):
    if not pool:
        pool.append(sound(self, np.zeros(20_000), 1.0, 2.0**-30))
    noise = random.choice(pool[0], values.shape)
    return np.rint((values + noise * scale) / step) * step if step else values


System.laplace = laplace

if __name__ == "__main__":
    main()
