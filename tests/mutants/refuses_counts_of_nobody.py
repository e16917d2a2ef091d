"""Refuses to count by group where a model accepts nobody of some group, and charges nothing for it."""

import numpy as np

from compliance.__main__ import main
from compliance.answers.groups import GroupCase
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2

KILLED_BY = "C613"

sound = GroupCase.answer


def answer(self, developer, request_id, digest, header, predictions):
    cells, groups = self.people.cells(header.by)
    if any((np.bincount(cells, row, groups) == 0).any() for row in predictions):
        raise Refusal(error_pb2.REASON_MECHANISM_REFUSES)
    return sound(self, developer, request_id, digest, header, predictions)


GroupCase.answer = answer

if __name__ == "__main__":
    main()
