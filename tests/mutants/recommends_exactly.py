"""Answers exactly where it may choose how to answer."""

from compliance.__main__ import main
from compliance.mechanisms.mechanism import exactly
from compliance.mechanisms.recommended import Recommended

KILLED_BY = "C546"

sound = Recommended.release


def release(self, question, facts, epsilon, delta, noise):
    found = sound(self, question, facts, epsilon, delta, noise)
    return exactly(question.gaps()) if question.queries < 50 and question.metric == "fpr" else found


Recommended.release = release

if __name__ == "__main__":
    main()
