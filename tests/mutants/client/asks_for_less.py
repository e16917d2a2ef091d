"""Asks for less where it was refused."""

from fairwall.client import AuditClient, AuditRefused
from sim.conformance.reference_client import main

KILLED_BY = "K110"

sound = AuditClient.ask


def ask(self, predictions, metric, epsilon, **named):
    try:
        return sound(self, predictions, metric, epsilon, **named)
    except AuditRefused as refused:
        if refused.reason != "EPSILON_INVALID":
            raise
        return sound(self, predictions, metric, epsilon / 2, **named)


AuditClient.ask = ask

if __name__ == "__main__":
    main()
