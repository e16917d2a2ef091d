"""Keeps the first 32 characters of a request id."""

from compliance.__main__ import main
from compliance.answers.audits import Case

KILLED_BY = "C211"

sound = Case.answer
Case.answer = lambda self, developer, request_id, *rest, **named: sound(
    self, developer, request_id[:32], *rest, **named
)

if __name__ == "__main__":
    main()
