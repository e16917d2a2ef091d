"""The clipping norm follows the median of the gradients' norms (Andrew, Thakkar, McMahan, Ramaswamy, NeurIPS 2021).

[SD], VII-D. A step releases, beside the gradient, a noisy count of rows below the norm; both are one Gaussian release
at the noise multiplier that is accounted for (`fairwall.learning.private`).
"""

from __future__ import annotations

from dataclasses import replace

from developer.training.practice.descent import descent
from developer.training.practice.practice import Halved, Practised, Task


def train(task: Task) -> Practised:
    """Train by DP-SGD at a norm that is adapted with each step, and starts at the task's."""
    steps = descent(task)
    step = replace(steps.step, what=f"{steps.named}; with the gradient, a count of rows below the clipping norm")
    return Practised(Halved(steps.fit(task.people, task.seed, adaptive=True)), (step,), steps.spent)
