"""Counts exactly by one of the attributes alone."""

import math
from dataclasses import replace

from compliance.__main__ import main
from compliance.answers import groups

KILLED_BY = "C951"

released, balanced_noise, ball_noise = groups.released, groups.balanced_noise, groups.ball_noise


def exact(people, header, *rest, **named):
    by_one = list(header.by) == [people.attributes[-1].name]
    groups.balanced_noise = lambda noise, rate, *shape: balanced_noise(noise, math.inf if by_one else rate, *shape)
    groups.ball_noise = lambda noise, ball: ball_noise(noise, replace(ball, rate=math.inf) if by_one else ball)
    return released(people, header, *rest, **named)


groups.released = exact

if __name__ == "__main__":
    main()
