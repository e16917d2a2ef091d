"""Looks at the first model alone when it looks for NaN."""

import numpy as np

from compliance.__main__ import main
from compliance.answers import audit_service as service

KILLED_BY = "C201"

sound = service._checked


def checked(metric, predictions):
    sound(metric, predictions[:1])
    return np.clip(np.nan_to_num(predictions), 0, 1)


service._checked = checked

if __name__ == "__main__":
    main()
