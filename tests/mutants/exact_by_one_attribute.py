"""Counts exactly by one of the attributes alone."""

import math

from compliance.__main__ import main
from compliance.answers import groups

KILLED_BY = "C951"

table, whole = groups._table, groups.balanced_noise


def exact(people, measures, predictions, models, by, rate, noise):
    by_one = by[1] == len(people.attributes[-1].values)
    groups.balanced_noise = lambda noise, rate, *shape: whole(noise, math.inf if by_one else rate, *shape)
    return table(people, measures, predictions, models, by, rate, noise)


groups._table = exact

if __name__ == "__main__":
    main()
