"""Offers a share of what is left, whatever one batch may spend."""

import math
from dataclasses import replace

from fairwall.client import AuditClient
from sim.conformance.reference_client import main

KILLED_BY = "K111"

sound = AuditClient.terms
AuditClient.terms = lambda self: replace(sound(self), epsilon_max=math.inf)

if __name__ == "__main__":
    main()
