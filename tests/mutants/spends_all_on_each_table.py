"""Draws the noise of each model's table for all of epsilon, and tells that of its part."""

from compliance.__main__ import main
from compliance.answers import groups

KILLED_BY = "C951"

released, whole = groups.released, groups.balanced_noise


def settle(people, header, predictions, *how, **named):
    groups.balanced_noise = lambda noise, rate, *shape: whole(noise, rate * len(predictions), *shape)
    return released(people, header, predictions, *how, **named)


groups.released = settle

if __name__ == "__main__":
    main()
