"""The parts of a table's columns as a caller names them, and what a shipped table assumes about that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fairwall.tables.errors import DataError
from fairwall.tables.roles import Roles


@dataclass(frozen=True)
class Asked:
    """The parts as a caller named them; None is a part left to the defaults."""

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
    """A table that comes with the package: the outcome, its favourable value, and columns with a part to play.

    ``groups`` are (advantaged, disadvantaged) by protected column, the first of which is the default. Columns in
    ``never`` are no features whatever is asked. ``derived`` columns were worked out from another one, by name: they add
    nothing to their origin, so they are no features, and where one is protected or the label its origin is none either.
    ``negative`` is the label's other values where they are several.
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
        """Where the table lies."""
        return Path(__file__).with_name(f"{self.name}.csv.gz")

    def roles(self, asked: Asked) -> Roles:
        """Fill in what the caller left open.

        A default value belongs to its column, and the two groups are a pair: who names the advantaged value names the
        other one too, unless the column has no third.
        """
        protected = asked.protected or next(iter(self.groups))
        label = asked.label or self.label
        advantaged, disadvantaged = asked.advantaged, asked.disadvantaged
        if advantaged is None and protected in self.groups:
            advantaged, other = self.groups[protected]
            disadvantaged = other if disadvantaged is None else disadvantaged
        positive = self.positive if asked.positive is None and label == self.label else asked.positive
        origins = (origin for column, origin in self.derived.items() if column in (protected, label))
        return Roles(
            protected=protected,
            advantaged=advantaged,
            disadvantaged=disadvantaged,
            label=label,
            positive=positive,
            drop=(*self.never, *self.derived, *origins, *asked.drop),
            negative=self.negative if asked.negative is None and label == self.label else asked.negative,
            missing_values=asked.missing_values,
        )


def own(name: str, asked: Asked) -> Roles:
    """Take the parts of a user's own table, which has no defaults."""
    parts = ("protected", "advantaged", "label", "positive")
    missing = [part for part in parts if getattr(asked, part) is None]
    if missing:
        raise DataError(f"{name}: a table of your own has no defaults; give {', '.join(missing)}")
    return Roles(**vars(asked))
