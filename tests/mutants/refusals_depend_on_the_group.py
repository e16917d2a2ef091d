"""Refuses a NaN about the disadvantaged for another reason than one about the advantaged."""

import numpy as np

from compliance.__main__ import main
from compliance.answers import audit_service as service
from compliance.records.people import Records
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2

KILLED_BY = "C602"

groups = []
sound, sound_records = service._checked, Records.__post_init__


def loaded(self):
    sound_records(self)
    groups[:] = [self.protected]


def checked(metric, predictions):
    if np.isnan(predictions[:, groups[0] == 0]).any():
        raise Refusal(error_pb2.REASON_PREDICTIONS_OUT_OF_RANGE)
    return sound(metric, predictions)


Records.__post_init__ = loaded
service._checked = checked

if __name__ == "__main__":
    main()
