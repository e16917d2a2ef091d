"""Answers by its own column whatever column gaps are asked for by."""

from compliance.__main__ import main
from compliance.answers.audits import Case

KILLED_BY = "C225"

Case.by = lambda self, _: self

if __name__ == "__main__":
    main()
