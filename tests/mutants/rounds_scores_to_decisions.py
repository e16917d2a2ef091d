"""Rounds scores where a metric needs decisions."""

import numpy as np

from compliance import service
from compliance.__main__ import main

KILLED_BY = "C203"

sound = service._checked


def checked(metric, predictions):
    return sound(metric, np.rint(predictions) if metric == "ppv" else predictions)


service._checked = checked

if __name__ == "__main__":
    main()
