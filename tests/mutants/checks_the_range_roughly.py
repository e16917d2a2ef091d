"""Lets predictions be a little outside [0, 1]."""

import numpy as np

from compliance.__main__ import main
from compliance.answers import audit_service as service

KILLED_BY = "C202"

sound = service._checked


def checked(metric, predictions):
    near = (predictions > -1e-9) & (predictions < 1 + 1e-9)
    return sound(metric, np.where(near, np.clip(predictions, 0, 1), predictions))


service._checked = checked

if __name__ == "__main__":
    main()
