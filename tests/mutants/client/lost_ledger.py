"""Takes a ledger that cannot be written for a request that was not charged, and asks anew."""

from fairwall.client import AuditClient, AuditRefused
from sim.conformance.reference_client import main

KILLED_BY = "K104"


def ask(self, *rest, sound=AuditClient.ask, **named):
    try:
        return sound(self, *rest, **named)
    except AuditRefused as refused:
        if refused.reason != "LEDGER_UNAVAILABLE":
            raise
        return sound(self, *rest, **named)


AuditClient.ask = ask

if __name__ == "__main__":
    main()
