"""Remembers the last hundred answers, and sells the others again."""

from itertools import count

from compliance.__main__ import main
from compliance.answers.audits import Case

KILLED_BY = "C306"

sound, remembered, numbers = Case.answer, {}, count()


def settle(self, developer, request_id, *rest, **named):
    key = (developer, request_id)
    if key not in remembered:
        remembered[key] = f"{request_id[:50]}~{next(numbers)}"
        while len(remembered) > 100:
            remembered.pop(next(iter(remembered)))
    return sound(self, developer, remembered[key], *rest, **named)


Case.answer = settle

if __name__ == "__main__":
    main()
