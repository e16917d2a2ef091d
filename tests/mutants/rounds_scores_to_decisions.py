"""Rounds scores where a metric needs decisions."""

import numpy as np

from compliance.__main__ import main
from compliance.answers import audit_service as service

KILLED_BY = "C203"

sound = service._checked


def checked(metric, predictions):
    return sound(metric, np.rint(predictions) if metric == "ppv" else predictions)


service._checked = checked

if __name__ == "__main__":
    main()
