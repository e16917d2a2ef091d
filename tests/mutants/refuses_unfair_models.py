"""Refuses a model whose exact gap is large."""

import numpy as np

from compliance.__main__ import main
from compliance.mechanisms.laplace import LaplaceMechanism
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2

KILLED_BY = "C604"

sound = LaplaceMechanism.release


def release(self, question, facts, epsilon, delta, noise):
    if np.abs(question.gaps()).max() > 0.9:
        raise Refusal(error_pb2.REASON_MECHANISM_REFUSES)
    return sound(self, question, facts, epsilon, delta, noise)


LaplaceMechanism.release = release

if __name__ == "__main__":
    main()
