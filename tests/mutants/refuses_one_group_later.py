"""Takes longer to refuse a prediction about one group."""

import time

import numpy as np

from compliance.__main__ import main
from compliance.answers import audit_service as service
from compliance.records.people import Records

KILLED_BY = "C612"

sound, loaded = service._checked, Records.__post_init__
groups = []


def post(self):
    loaded(self)
    groups[:] = [self.protected]


def checked(metric, predictions):
    bad = ~np.isfinite(predictions).all(axis=0)
    if bad.any() and groups[0][bad].any():
        time.sleep(0.003)
    return sound(metric, predictions)


Records.__post_init__, service._checked = post, checked

if __name__ == "__main__":
    main()
