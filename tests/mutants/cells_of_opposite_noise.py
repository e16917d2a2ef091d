"""Puts the opposite of the noise on an account's cells on those that it buys next, by another protected column."""

import numpy as np

from compliance.__main__ import main
from compliance.mechanisms import cells
from compliance.noise.sampling import System

KILLED_BY = "C970"

sound, drawn = cells._buy, {}


def buy(question, facts, epsilon, noise, limit, besides):
    bought = sound(question, facts, epsilon, noise, limit, besides)
    if not isinstance(noise, System) or "cells.0.of" not in bought:
        return bought
    of, counted = bought["cells.0.of"], bought["cells.0.counts"]
    exact = np.bincount(of[question.records.protected == 0], minlength=len(counted))
    before = drawn.pop(len(counted), None)
    if before is None:
        drawn[len(counted)] = counted[:, 0] - exact
    else:
        counted[:, 0] = exact - before
    return bought


cells._buy = buy

if __name__ == "__main__":
    main()
