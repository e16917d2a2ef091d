"""Asks again, under another id, when it was refused."""

from fairwall.client import AuditClient, AuditRefused
from sim.conformance.reference_client import main

KILLED_BY = "K103"


def ask(self, *rest, sound=AuditClient.ask, **named):
    try:
        return sound(self, *rest, **named)
    except AuditRefused:
        return sound(self, *rest, **named)


AuditClient.ask = ask

if __name__ == "__main__":
    main()
