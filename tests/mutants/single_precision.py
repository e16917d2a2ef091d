"""Computes in float32."""

import numpy as np

from compliance.__main__ import main
from compliance.records import metrics

KILLED_BY = "C501"

sound = metrics._difference_of_means


def difference(part):
    return (np.float32(part.sum1) / np.float32(part.n1) - np.float32(part.sum0) / np.float32(part.n0)).astype(float)


metrics._difference_of_means = difference

if __name__ == "__main__":
    main()
