"""COMPAS: who reoffended within two years of being screened in Broward County, Florida, 2013 and 2014."""

from __future__ import annotations

from sim.datasets.roles import Shipped

COMPAS = Shipped(
    name="compas",
    label="two_year_recid",
    positive="0",
    groups={"race": ("Caucasian", "African-American"), "sex": ("Female", "Male")},
    # Another model's output: a model that reads them is no longer the one under audit.
    never=("decile_score", "score_text"),
)
