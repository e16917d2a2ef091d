"""Spends all of epsilon in each round of a search, and charges it once."""

from compliance.__main__ import main
from compliance.mechanisms import cells

KILLED_BY = "C975"

sound = cells._buy


def buy(question, facts, epsilon, noise, limit, besides):
    return sound(question, facts, epsilon if besides else 3 * epsilon, noise, limit, besides)


cells._buy = buy

if __name__ == "__main__":
    main()
