"""Asks again under a new request id where the deadline has passed."""

from fairwall.client import AuditClient, AuditUnavailable
from sim.conformance.reference_client import main

KILLED_BY = "K109"

sound = AuditClient.ask


def ask(self, *rest, **named):
    try:
        return sound(self, *rest, **named)
    except AuditUnavailable as error:
        if "DEADLINE" not in str(error):
            raise
        return sound(self, *rest, **named)


AuditClient.ask = ask

if __name__ == "__main__":
    main()
