"""Charges a batch its epsilon once a model."""

from compliance.__main__ import main
from compliance.answers.audits import Case

KILLED_BY = "C401"

sound = Case.answer


def settle(self, developer, request_id, digest, metric, predictions, *more, **named):
    others = len(predictions) - 1
    entry = sound(self, developer, request_id, digest, metric, predictions, *more, **named)
    for number in range(min(others, 3)):
        sound(self, developer, f"{request_id[:50]}~{number}", digest, metric, predictions, *more, **named)
    return entry


Case.answer = settle

if __name__ == "__main__":
    main()
