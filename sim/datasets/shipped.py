"""The tables that come with the package, and the roles of a table's columns as a caller names them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fairwall.errors import DataError
from fairwall.tables.people import Roles


@dataclass(frozen=True)
class NamedRoles:
    """The roles named by a caller; None is left to the defaults."""

    protected: str | None
    advantaged: str | None
    disadvantaged: str | tuple[str, ...] | None
    label: str | None
    positive: str | None
    drop: tuple[str, ...] = ()
    negative: str | tuple[str, ...] | None = None
    missing_values: tuple[str, ...] = ()


@dataclass(frozen=True)
class Shipped:
    """A table that comes with the package: the outcome, its favourable value, and columns with a role.

    ``groups`` are (advantaged, disadvantaged) by protected column, the first of which is the default. Columns in
    ``never`` are never features. ``derived`` columns were computed from another one, by name: they add nothing to their
    origin, so they are no features, and where one is protected or the label its origin is none either. ``negative`` is
    the label's other values where they are several.
    """

    name: str
    label: str
    positive: str
    groups: Mapping[str, tuple[str, str]]
    never: tuple[str, ...] = ()
    derived: Mapping[str, str] = field(default_factory=dict)
    negative: tuple[str, ...] | None = None

    @property
    def path(self) -> Path:
        """The path of the table's file."""
        return Path(__file__).with_name(f"{self.name}.csv.gz")

    def roles(self, named_roles: NamedRoles) -> Roles:
        """Return the caller's roles, completed by the defaults.

        A default value belongs to its column, and the two groups are a pair: a caller who names the advantaged value
        must name the other one too, unless the column has no third.
        """
        protected = named_roles.protected or next(iter(self.groups))
        label = named_roles.label or self.label
        advantaged, disadvantaged = named_roles.advantaged, named_roles.disadvantaged
        if advantaged is None and protected in self.groups:
            advantaged, other = self.groups[protected]
            disadvantaged = other if disadvantaged is None else disadvantaged
        positive = self.positive if named_roles.positive is None and label == self.label else named_roles.positive
        origins = (origin for column, origin in self.derived.items() if column in (protected, label))
        return Roles(
            protected=protected,
            advantaged=advantaged,
            disadvantaged=disadvantaged,
            label=label,
            positive=positive,
            drop=(*self.never, *self.derived, *origins, *named_roles.drop),
            negative=self.negative if named_roles.negative is None and label == self.label else named_roles.negative,
            missing_values=named_roles.missing_values,
        )


def own(name: str, named_roles: NamedRoles) -> Roles:
    """Return the roles of a user's own table, which has no defaults."""
    parts = ("protected", "advantaged", "label", "positive")
    missing = [part for part in parts if getattr(named_roles, part) is None]
    if missing:
        raise DataError(f"{name}: a table of your own has no defaults; give {', '.join(missing)}")
    return Roles(**vars(named_roles))


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
