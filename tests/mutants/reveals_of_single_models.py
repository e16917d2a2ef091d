"""Says of every batch what one of a single model gives away."""

from compliance.__main__ import main
from compliance.answers.audits import Case

KILLED_BY = "C526"

sound = Case.revealed


def revealed(self, metric, models, epsilon):
    return sound(self, metric, min(models, 1), epsilon)


Case.revealed = revealed

if __name__ == "__main__":
    main()
