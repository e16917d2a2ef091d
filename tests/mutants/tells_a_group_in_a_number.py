"""Tells in a refusal how many people are disadvantaged, for how many there are."""

from compliance.__main__ import main
from compliance.answers import audit_service as service
from fairwall.rpc.errors import Refusal

KILLED_BY = "C608"

sound = service._receive


def receive(header, metric, requests, case):
    try:
        return sound(header, metric, requests, case)
    except Refusal as refusal:
        if refusal.error.HasField("people"):
            refusal.error.people = case.records.counts("sp")[0]
        raise


service._receive = receive

if __name__ == "__main__":
    main()
