"""Takes everybody to be surely of the group that is likeliest, where an attribute is known by probabilities."""

import numpy as np

from compliance.__main__ import main
from compliance.deployment.policy import loading

KILLED_BY = "C956"

rounded = loading.rounded


def likeliest(probabilities):
    return rounded(np.eye(probabilities.shape[1])[probabilities.argmax(axis=1)])


loading.rounded = likeliest

if __name__ == "__main__":
    main()
