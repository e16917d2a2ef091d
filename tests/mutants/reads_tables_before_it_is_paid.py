"""Reads a table before it looks at the budget."""

from compliance.__main__ import main
from compliance.answers.audits import Case

KILLED_BY = "C997"

Case.require_covered = lambda *_: None

if __name__ == "__main__":
    main()
