"""Draws the gap of each candidate by itself, as if no two models were alike."""

import numpy as np

from compliance.__main__ import main
from compliance.answers import audits

KILLED_BY = "C971"

honest = audits._draws


def drawn(*asked):
    return np.random.default_rng(0).permuted(honest(*asked), axis=0)


audits._draws = drawn

if __name__ == "__main__":
    main()
