"""Draws counts by group twice where they are asked for twice at the same time."""

import dataclasses
import time

from compliance.__main__ import main
from compliance.answers.groups import GroupCase, released
from compliance.ledger.entries import Reply
from compliance.noise.sampling import System
from fairwall.rpc import work

KILLED_BY = "C305"

sound, kept = GroupCase.answer, {}


def settle(grouped, developer, request_id, digest, header, predictions):
    known = kept.get((developer, request_id))
    with work.waiting():
        time.sleep(0.05)
    entry = sound(grouped, developer, request_id, digest, header, predictions)
    if known is None:
        counted = released(grouped.people, header, predictions, System())
        kept[developer, request_id] = known = Reply(counted.SerializeToString(deterministic=True))
    return dataclasses.replace(entry, reply=known)


GroupCase.answer = settle

if __name__ == "__main__":
    main()
