"""Answers by the last protected column where a request names none."""

from compliance.__main__ import main
from compliance.answers.audits import Case

KILLED_BY = "C961"

sound = Case.by

Case.by = lambda case, column: sound(case, column or [case.protected, *case.others][-1])

if __name__ == "__main__":
    main()
