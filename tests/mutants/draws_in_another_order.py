"""Draws the gaps of candidates in another order than theirs."""

import numpy as np

from compliance.__main__ import main
from compliance.answers import audits

KILLED_BY = "C971"

honest = audits._draws


def drawn(*asked):
    return np.roll(honest(*asked), 1, axis=1)


audits._draws = drawn

if __name__ == "__main__":
    main()
