"""Puts the exact gap into an answer's metadata."""

from compliance.__main__ import main
from compliance.answers import audit_service as service
from compliance.mechanisms.mechanism import Question

KILLED_BY = "C605"

sound = service._answer


def settle(case, header, metric, predictions, context, *rest, **named):
    question = Question(metric, predictions, case.records)
    context.set_trailing_metadata((("x-debug", str(question.gaps()[0])),))
    return sound(case, header, metric, predictions, context, *rest, **named)


service._answer = settle

if __name__ == "__main__":
    main()
