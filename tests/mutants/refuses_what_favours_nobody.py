"""Refuses a model that accepts nobody of a group, and charges nothing for it."""

from compliance.__main__ import main
from compliance.answers.audits import Case
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2

KILLED_BY = "C613"

sound = Case.answer


def answer(self, developer, request_id, digest, metric, predictions, epsilon, candidates=None):
    groups = (predictions[:, self.records.protected == group] for group in (0, 1))
    if not all((of_group > 0).any(axis=1).all() for of_group in groups):
        raise Refusal(error_pb2.REASON_MECHANISM_REFUSES)
    return sound(self, developer, request_id, digest, metric, predictions, epsilon, candidates)


Case.answer = answer

if __name__ == "__main__":
    main()
