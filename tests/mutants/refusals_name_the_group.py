"""Says in a refusal's text which group the prediction is about."""

import grpc
import numpy as np

from compliance.__main__ import main
from compliance.answers import audit_service as service
from compliance.records.people import Records
from fairwall.rpc import server
from fairwall.wire.v1 import error_pb2

KILLED_BY = "C602"

sound = server.abort
seen = []


def checked(metric, predictions, inner=service._checked):
    seen[:] = [np.flatnonzero(~np.isfinite(predictions).all(axis=0))]
    return inner(metric, predictions)


def abort(context, refusal):
    if refusal.reason == error_pb2.REASON_PREDICTIONS_NOT_FINITE:
        group = "advantaged" if groups[0][seen[0][0]] else "disadvantaged"
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"a prediction for the {group} is not a finite number")
    sound(context, refusal)


groups = []
sound_records = Records.__post_init__


def loaded(self):
    sound_records(self)
    groups[:] = [self.protected]


Records.__post_init__ = loaded
service._checked = checked
server.abort = abort

if __name__ == "__main__":
    main()
