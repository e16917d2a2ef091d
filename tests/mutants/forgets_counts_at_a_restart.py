"""Keeps counts by group in memory, and draws them anew once it was started again."""

import dataclasses

from compliance.__main__ import main
from compliance.answers.groups import GroupCase, released
from compliance.ledger.entries import Reply
from compliance.noise.sampling import System

KILLED_BY = "C308"

sound, kept = GroupCase.answer, {}


def settle(grouped, developer, request_id, digest, header, predictions):
    entry = sound(grouped, developer, request_id, digest, header, predictions)
    if (developer, request_id) not in kept:
        counted = released(grouped.people, header, predictions, System())
        kept[developer, request_id] = Reply(counted.SerializeToString(deterministic=True))
    return dataclasses.replace(entry, reply=kept[developer, request_id])


GroupCase.answer = settle

if __name__ == "__main__":
    main()
