"""The private network as it is: what every practice is held against."""

from __future__ import annotations

from developer.training.practice.descent import descent
from developer.training.practice.practice import Halved, Practised, Task


def train(task: Task) -> Practised:
    """Train by DP-SGD, and decide at 1/2."""
    steps = descent(task)
    return Practised(Halved(steps.fit(task.people, task.seed)), (steps.step,), steps.spent)
