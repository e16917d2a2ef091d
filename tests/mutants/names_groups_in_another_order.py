"""Names the values of an attribute in another order than it counts them in, by group."""

from compliance.__main__ import main
from compliance.answers import groups

KILLED_BY = "C951"

whole = groups.GroupCase.attributes


def attributes(case, names):
    told = whole(case, names)
    if not isinstance(names, list):  # as terms ask for them
        for each in told:
            each.values[:] = each.values[::-1]
    return told


groups.GroupCase.attributes = attributes

if __name__ == "__main__":
    main()
