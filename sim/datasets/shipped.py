"""The tables that come with the package."""

from __future__ import annotations

from sim.datasets.roles import Shipped

ADULT = Shipped(
    name="adult",  # incomes above 50,000 dollars in the 1994 census of the United States
    label="income",
    positive=">50K",
    groups={"race": ("White", "Black"), "sex": ("Male", "Female")},
)

COMPAS = Shipped(
    name="compas",  # reoffending within two years of a screening in Broward County, Florida, 2013 and 2014
    label="two_year_recid",
    positive="0",
    groups={"race": ("Caucasian", "African-American"), "sex": ("Female", "Male")},
    # Another model's output: a model that reads them is no longer the one under audit.
    never=("decile_score", "score_text"),
)

GERMAN = Shipped(
    name="german",  # good and bad bank credits of the Statlog collection
    label="credit",
    positive="good",
    groups={"sex": ("male", "female")},
    # The source codes sex and marital status in one attribute.
    derived={"sex": "personal_status"},
)

SHIPPED = {shipped.name: shipped for shipped in (ADULT, COMPAS, GERMAN)}
