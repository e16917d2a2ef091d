"""Draws the noise of each row of many models with a size of its own, as if it were the only one."""

import dataclasses

import numpy as np

from compliance.__main__ import main
from compliance.answers import groups

KILLED_BY = "C951"

whole = groups.ball_noise


def apart(noise, ball, times=1):
    rows = [whole(noise, dataclasses.replace(ball, reaches=(reach,)), times) for reach in ball.reaches]
    return np.concatenate(rows, axis=1)


groups.ball_noise = apart

if __name__ == "__main__":
    main()
