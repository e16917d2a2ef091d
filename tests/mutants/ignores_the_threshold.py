"""Compares every gap with 0, whatever the threshold."""

from compliance.__main__ import main
from compliance.answers.audits import Case

KILLED_BY = "C513"

sound = Case.probability_above
Case.probability_above = lambda self, entry, predictions, _: sound(self, entry, predictions, 0.0)

if __name__ == "__main__":
    main()
