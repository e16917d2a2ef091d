"""Deals another order of the people to who asks again."""

import numpy as np

from sim.conformance.reference_referee import main
from sim.games import referee

KILLED_BY = "R106"

sound = referee.chunks_of
asked = []


def chunks(array):
    asked.append(1)
    return sound(np.roll(array, len(asked) // 3, axis=0))


referee.chunks_of = chunks

if __name__ == "__main__":
    main()
