"""Asks again under a new request id where the service failed."""

from fairwall.client import AuditClient, AuditRefused
from sim.conformance.reference_client import main

KILLED_BY = "K109"

sound = AuditClient.ask


def ask(self, *rest, **named):
    try:
        return sound(self, *rest, **named)
    except AuditRefused as refused:
        if refused.reason != "INTERNAL":
            raise
        return sound(self, *rest, **named)


AuditClient.ask = ask

if __name__ == "__main__":
    main()
