"""Parameters of a developer's ensemble of trees."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Boosting:
    """LightGBM's ``max_depth``, ``learning_rate`` and ``n_estimators``; other parameters have their defaults."""

    depth: int
    rate: float
    trees: int
