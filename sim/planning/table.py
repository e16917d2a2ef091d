"""The two groups and labels of a table, counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fairwall.errors import did_you_mean, nearest
from fairwall.laws.sensitivity import Counts
from fairwall.tables.columns import Categories, Column
from fairwall.tables.errors import DataError
from fairwall.tables.people import check_roles, select
from fairwall.tables.reading import header, read
from fairwall.tables.roles import Roles
from sim import datasets
from sim.datasets import SHIPPED, Rows
from sim.datasets.roles import Asked


@dataclass(frozen=True)
class Table:
    """What a plan takes from a table.

    Attributes
    ----------
    counts : people by label and group. Secret.
    groups : what the disadvantaged and the advantaged are called.
    outcome : what label 1 is.
    left_out : rows that are in neither group, in words; empty where there are none.
    roles : which column plays which part, nothing left open.
    """

    name: str
    counts: Counts
    groups: tuple[str, str]
    outcome: str
    left_out: tuple[str, ...]
    roles: Roles


def load(source: str, protected: str, advantaged: str | None, target: str, positive: str | None) -> Table:
    """Read a shipped table by its name, or a CSV or Parquet file by its path, and count.

    ``advantaged`` and ``positive`` are the columns' values that count as 1. None is for a shipped table's own, or where
    there are but two values, for the later one: which of two groups is called advantaged makes no difference to a plan.

    Raises DataError in one line on what is wrong with the file, a column or a value: a group that is absent, a target
    that never varies, more than two values to choose from.
    """
    if source in SHIPPED:
        path = SHIPPED[source].path
        roles = SHIPPED[source].roles(Asked(protected, advantaged, None, target, positive, ()))
    else:
        path, roles = Path(source), Roles(protected, advantaged, None, target, positive)
    if not path.suffix and not path.exists():
        hint = did_you_mean(nearest(source, SHIPPED))
        raise DataError(f"{source}: neither a shipped table ({', '.join(SHIPPED)}) nor a file{hint}")
    check_roles(source, header(path, source), roles)
    columns = read(path, source, (roles.protected, roles.label))
    groups, outcomes = (Categories.of(Column.of(source, name, columns)) for name in (roles.protected, roles.label))
    roles = Roles(
        protected,
        roles.advantaged or _later(groups, "--advantaged"),
        roles.disadvantaged,
        target,
        roles.positive or _later(outcomes, "--positive"),
    )
    people = select(source, columns, roles)
    (n00, n01), (n10, n11) = (
        [int(np.sum((people.labels == label) & (people.protected == a))) for a in (0, 1)] for label in (0, 1)
    )
    others = [
        value for value in groups.values if value != roles.advantaged and (groups.having(value) & people.kept).any()
    ]
    disadvantaged = others[0] if len(others) == 1 else f"not {roles.advantaged}"
    return Table(
        path.name,
        Counts(n00, n01, n10, n11),
        (disadvantaged, str(roles.advantaged)),
        f"{target} {roles.positive}",
        tuple(str(why) for why in people.left_out),
        roles,
    )


def load_rows(source: str, table: Table, drop: Sequence[str]) -> Rows:
    """Read the features of a table's people, but for dropped columns.

    Raises DataError in one line on which column cannot be a feature, and why.
    """
    roles = table.roles
    return datasets.load(
        source,
        protected=roles.protected,
        advantaged=roles.advantaged,
        disadvantaged=roles.disadvantaged,
        label=roles.label,
        positive=roles.positive,
        drop=drop,
    )


def _later(column: Categories, option: str) -> str:
    values = [value for value in column.values if not column.having(value)[column.missing()].any()]
    if len(values) == 2:
        return values[1]
    if len(values) == 1:
        raise DataError(f"{column.where} is {values[0]!r} in every row; it must have two values")
    raise DataError(f"{column.where} has more than two values; say which with {option}; {column.known()}")
