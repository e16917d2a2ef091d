"""Asks for statistical parity whatever may be asked for."""

from dataclasses import replace

from fairwall.client import AuditClient
from sim.conformance.reference_client import main

KILLED_BY = "K111"

sound = AuditClient.terms
AuditClient.terms = lambda self: replace(sound(self), metrics=("sp",))

if __name__ == "__main__":
    main()
