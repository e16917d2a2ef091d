"""Refuses a model that gives nobody a score, free of charge: so it tells of rows for nothing."""

from compliance.__main__ import main
from compliance.answers.sealed import Sealed
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2

KILLED_BY = "C983"

sound = Sealed.scores


def scores(self, models, **how):
    found = sound(self, models, **how)
    if not found.any(axis=1).all():
        raise Refusal(error_pb2.REASON_MODEL_MALFORMED)
    return found


Sealed.scores = scores

if __name__ == "__main__":
    main()
