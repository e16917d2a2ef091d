"""Looks for NaN in float64 predictions alone."""

import numpy as np

from compliance.__main__ import main
from compliance.answers import audit_service as service
from fairwall.wire.v1.array_pb2 import ELEMENT_TYPE_FLOAT32

KILLED_BY = "C201"

sound, checked = service._receive, service._checked


def receive(header, metric, requests, case):
    trusted = header.predictions.element_type == ELEMENT_TYPE_FLOAT32
    service._checked = (lambda metric, found: checked(metric, np.nan_to_num(found, posinf=1))) if trusted else checked
    return sound(header, metric, requests, case)


service._receive = receive

if __name__ == "__main__":
    main()
