"""Makes the id of what is asked."""

import hashlib

from fairwall.client import AuditClient
from sim.conformance.reference_client import main

KILLED_BY = "K108"

sound = AuditClient.ask


def ask(self, predictions, metric, epsilon, **named):
    named["request_id"] = hashlib.sha256(predictions.tobytes() + metric.encode()).hexdigest()
    return sound(self, predictions, metric, epsilon, **named)


AuditClient.ask = ask

if __name__ == "__main__":
    main()
