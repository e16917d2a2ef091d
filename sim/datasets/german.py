"""German Credit: whose bank credit turned out good in the Statlog collection."""

from __future__ import annotations

from sim.datasets.roles import Shipped

GERMAN = Shipped(
    name="german",
    label="credit",
    positive="good",
    groups={"sex": ("male", "female")},
    # The source codes sex and marital status in one attribute.
    derived={"sex": "personal_status"},
)
