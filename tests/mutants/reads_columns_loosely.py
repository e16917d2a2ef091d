"""Takes a protected column's name with a blank behind it, or in capitals, for the name."""

from compliance.__main__ import main
from compliance.answers.audits import Case

KILLED_BY = "C965"

sound = Case.by

Case.by = lambda case, column: sound(case, column.strip().lower())

if __name__ == "__main__":
    main()
