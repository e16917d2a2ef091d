"""Puts the opposite of the noise on an account's cells on those that it buys next, by another protected column."""

import numpy as np

from compliance.__main__ import main
from compliance.mechanisms import cells

KILLED_BY = "C970"

sound, drawn = cells._buy, []


def buy(question, facts, epsilon, noise, limit, besides):
    bought = sound(question, facts, epsilon, noise, limit, besides)
    of, counted = (bought[name] for name in ("cells.0.of", "cells.0.counts")) if "cells.0.of" in bought else (None, None)
    if of is None:
        return bought
    exact = np.bincount(of[question.records.protected == 0], minlength=len(counted))
    if drawn:
        counted[:, 0] = exact - drawn.pop()
    else:
        drawn.append(counted[:, 0] - exact)
    return bought


cells._buy = buy

if __name__ == "__main__":
    main()
