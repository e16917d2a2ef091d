"""Takes NaN for 0."""

import numpy as np

from compliance.__main__ import main
from compliance.answers import audit_service as service

KILLED_BY = "C201"

sound = service._checked
service._checked = lambda metric, predictions: sound(metric, np.nan_to_num(predictions, nan=0.0))

if __name__ == "__main__":
    main()
