"""Hides the exact gap in the bits of a probability that is no number."""

import numpy as np

from compliance.__main__ import main
from compliance.answers import audit_service as service
from compliance.mechanisms.mechanism import Question
from fairwall.rpc import arrays

KILLED_BY = "C524"

sound = service._answer


def settle(case, header, metric, predictions, context, *rest, **named):
    told = sound(case, header, metric, predictions, context, *rest, **named)
    if header.HasField("threshold") and metric == "ppv":
        gaps = Question(metric, predictions, case.records).gaps()
        bits = np.float64(np.nan).view(np.uint64) | (np.abs(gaps) * 2**40).astype(np.uint64)
        told.probability_above.CopyFrom(arrays.to_message(bits.view(np.float64)))
    return told


service._answer = settle

if __name__ == "__main__":
    main()
