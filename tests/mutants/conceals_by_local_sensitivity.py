"""Scales noise to the local sensitivity, which is smaller than the smooth one."""

from compliance.__main__ import main
from compliance.mechanisms.mechanism import Question

KILLED_BY = "C533"

sound = Question.smooth


def smooth(self, beta):
    return 0.7 * sound(self, beta)


Question.smooth = smooth

if __name__ == "__main__":
    main()
