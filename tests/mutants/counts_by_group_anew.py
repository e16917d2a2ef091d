"""Counts people by group anew when it is asked again."""

import dataclasses

from compliance.__main__ import main
from compliance.answers.groups import GroupCase, released
from compliance.ledger.entries import Reply
from compliance.noise.sampling import System

KILLED_BY = "C952"

settle = GroupCase.answer


def anew(grouped, developer, request_id, digest, header, predictions):
    entry = settle(grouped, developer, request_id, digest, header, predictions)
    counted = released(grouped.people, header, predictions, System())
    return dataclasses.replace(entry, reply=Reply(counted.SerializeToString(deterministic=True)))


GroupCase.answer = anew

if __name__ == "__main__":
    main()
