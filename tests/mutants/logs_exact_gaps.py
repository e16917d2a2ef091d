"""Writes the exact gaps into its log."""

from compliance.__main__ import main
from compliance.answers import audit_service as service
from compliance.mechanisms.mechanism import Question

KILLED_BY = "C606"

sound = service._answer


def settle(case, header, metric, predictions, context, *rest, **named):
    service.LOG.info("gaps %s", Question(metric, predictions, case.records).gaps().tolist())
    return sound(case, header, metric, predictions, context, *rest, **named)


service._answer = settle

if __name__ == "__main__":
    main()
