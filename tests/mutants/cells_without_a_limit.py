"""Cuts people into as many cells as make the least error, whatever that gives away."""

from compliance.__main__ import main
from compliance.mechanisms import cells
from fairwall.laws.exposure import NO_LIMIT

KILLED_BY = "C551"

sound = cells._buy
cells._buy = lambda question, facts, epsilon, noise, _, besides: sound(
    question, facts, epsilon, noise, NO_LIMIT, besides
)

if __name__ == "__main__":
    main()
