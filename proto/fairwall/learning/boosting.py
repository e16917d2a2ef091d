"""How far a developer lets an ensemble of trees grow."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Boosting:
    """LightGBM's parameters that are not its defaults.

    Attributes
    ----------
    depth : how many tests a row passes in a tree at most (``max_depth``).
    rate : what each tree's leaves are multiplied by (``learning_rate``), above 0.
    trees : how many there are (``n_estimators``).
    """

    depth: int
    rate: float
    trees: int
