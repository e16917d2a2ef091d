"""Takes NaN for 0."""

import numpy as np

from compliance import service
from compliance.__main__ import main

KILLED_BY = "C201"

sound = service._checked
service._checked = lambda metric, predictions: sound(metric, np.nan_to_num(predictions, nan=0.0))

if __name__ == "__main__":
    main()
