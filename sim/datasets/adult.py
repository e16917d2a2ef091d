"""Adult: who earned more than 50,000 dollars in the 1994 census of the United States."""

from __future__ import annotations

from sim.datasets.roles import Shipped

ADULT = Shipped(
    name="adult",
    label="income",
    positive=">50K",
    groups={"race": ("White", "Black"), "sex": ("Male", "Female")},
)
