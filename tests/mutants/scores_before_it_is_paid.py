"""Scores models before it looks at the budget."""

from compliance.__main__ import main
from compliance.answers import audit_service

KILLED_BY = "C984"

sound = audit_service._answer


def answer(case, header, metric, predictions, *more, **named):
    if case.sealed is not None and not hasattr(predictions, "shape"):
        found = predictions.sums()
        predictions = type(predictions)(predictions.models, lambda: found)
    return sound(case, header, metric, predictions, *more, **named)


audit_service._answer = answer

if __name__ == "__main__":
    main()
