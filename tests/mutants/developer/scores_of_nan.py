"""Scores features that are no numbers."""

import numpy as np

from developer import service
from sim.conformance.reference_developer import main

KILLED_BY = "D106"

service.np = type("np", (), {**vars(np), "isfinite": staticmethod(lambda values: np.full(np.shape(values), True))})

if __name__ == "__main__":
    main()
