"""Says of every batch how wide the answer about a single model would be."""

from compliance.__main__ import main
from compliance.answers.audits import Case

KILLED_BY = "C526"

sound = Case.expected


def expected(self, metric, models, epsilon):
    return sound(self, metric, min(models, 1), epsilon)


Case.expected = expected

if __name__ == "__main__":
    main()
