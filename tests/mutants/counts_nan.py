"""Takes NaN for 0 where it counts by group."""

import numpy as np

from compliance.__main__ import main
from compliance.answers import group_service as service

KILLED_BY = "C201"

sound = service.checked_predictions
service.checked_predictions = lambda predictions, *, binary: sound(np.nan_to_num(predictions), binary=binary)

if __name__ == "__main__":
    main()
