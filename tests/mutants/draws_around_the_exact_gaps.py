"""Draws the gaps of candidates around the exact ones, and not around the answers."""

from compliance.__main__ import main
from compliance.answers import audits

KILLED_BY = "C976"

sound = audits._draws


def drawn(question, name, release, generator):
    return sound(question, name, release, generator) + (question.gaps() - release.values)


audits._draws = drawn

if __name__ == "__main__":
    main()
