"""Moves predictions outside [0, 1] to its ends."""

import numpy as np

from compliance.__main__ import main
from compliance.answers import audit_service as service

KILLED_BY = "C202"

sound = service._checked
service._checked = lambda metric, predictions: sound(
    metric, np.where(np.isfinite(predictions), np.clip(predictions, 0, 1), predictions)
)

if __name__ == "__main__":
    main()
