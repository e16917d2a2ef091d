"""Warns in its log of a model whose exact gap is above a half."""

from compliance.__main__ import main
from compliance.answers import audit_service as service
from compliance.mechanisms.mechanism import Question

KILLED_BY = "C610"

sound = service._answer


def settle(case, header, metric, predictions, context, *rest, **named):
    if abs(Question(metric, predictions, case.records).gaps()).max() > 0.5:
        service.LOG.warning("deal %s: a model is far from fair", header.deal_id)
    return sound(case, header, metric, predictions, context, *rest, **named)


service._answer = settle

if __name__ == "__main__":
    main()
