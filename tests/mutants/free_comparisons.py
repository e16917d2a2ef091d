"""Charges nothing where a threshold is given."""

from dataclasses import replace

from compliance.__main__ import main
from compliance.answers import audit_service as service
from compliance.ledger.accountant import FREE
from compliance.mechanisms.laplace import LaplaceMechanism

KILLED_BY = "C401"

sound = service._answer


def settle(case, header, metric, predictions, context, *rest, **named):
    cheap = replace(case, mechanism=Free()) if header.HasField("threshold") else case
    return sound(cheap, header, metric, predictions, context, *rest, **named)


class Free(LaplaceMechanism):
    def cost(self, *_):
        return FREE


service._answer = settle

if __name__ == "__main__":
    main()
