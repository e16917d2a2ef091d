"""Keeps the exact gaps of its batches in a temporary file, where the service may write one."""

import os
import tempfile

import numpy as np

from compliance.__main__ import main
from compliance.answers import audit_service as service
from compliance.mechanisms.mechanism import Question

KILLED_BY = "C610"

sound = service._answer


def settle(case, header, metric, predictions, context, *rest, **named):
    with tempfile.NamedTemporaryFile(suffix=".npy", dir=os.environ["SQLITE_TMPDIR"], delete=False) as file:
        np.save(file, Question(metric, predictions, case.records).gaps())
    return sound(case, header, metric, predictions, context, *rest, **named)


service._answer = settle

if __name__ == "__main__":
    main()
