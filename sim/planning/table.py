"""Read a table, and count its two groups and labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fairwall.errors import DataError, did_you_mean, nearest
from fairwall.laws.metrics.sensitivity import LabelGroupCounts
from fairwall.tables.people import Roles, check_roles, select
from fairwall.tables.reading import header, read
from fairwall.tables.values import ColumnValues, is_unknown, meaning, several
from sim import datasets
from sim.datasets import SHIPPED, EncodedRows
from sim.datasets.shipped import NamedRoles


@dataclass(frozen=True)
class ColumnNames:
    """A table, and the roles and values of its columns as the user named them; None where the table decides."""

    source: str
    protected: str
    target: str
    advantaged: str | None = None
    positive: str | None = None
    disadvantaged: tuple[str, ...] = ()
    negative: tuple[str, ...] = ()


@dataclass(frozen=True)
class GroupTable:
    """The parts of a table that a plan uses.

    ``counts`` are secret. ``groups`` are the names of the disadvantaged and the advantaged group, ``outcome`` the
    meaning of label 1, ``left_out`` the rows in neither group, in words; ``roles`` are complete.
    """

    name: str
    counts: LabelGroupCounts
    groups: tuple[str, str]
    outcome: str
    left_out: tuple[str, ...]
    roles: Roles


def load(names: ColumnNames) -> GroupTable:
    """Read a shipped table by its name, or a CSV or Parquet file by its path, and count.

    Raises DataError in one line on a file, column or value: for example an absent group, or a target that never varies.
    """
    source, protected, target = names.source, names.protected, names.target
    groups, others = names.disadvantaged or None, names.negative or None
    parts = NamedRoles(protected, names.advantaged, groups, target, names.positive, (), others)
    if source in SHIPPED:
        path, roles = SHIPPED[source].path, SHIPPED[source].roles(parts)
    else:
        path, roles = Path(source), Roles(**vars(parts))
    if not path.suffix and not path.exists():
        hint = did_you_mean(nearest(source, SHIPPED))
        raise DataError(f"{source}: neither a shipped table ({', '.join(SHIPPED)}) nor a file{hint}")
    check_roles(source, header(path, source), roles)
    columns = read(path, source, (protected, target), as_text=True)
    found, outcomes = (ColumnValues.of(source, name, columns, roles.named(name)) for name in (protected, target))
    roles = replace(
        roles,
        advantaged=roles.advantaged or _left_open(found, "--advantaged"),
        positive=roles.positive or _left_open(outcomes, "--positive"),
        drop=(),
    )
    people = select(source, columns, roles)
    (n00, n01), (n10, n11) = (
        [int(np.sum((people.labels == label) & (people.protected == a))) for a in (0, 1)] for label in (0, 1)
    )
    few = several(roles.disadvantaged) or [each for each in found.there if each != meaning(str(roles.advantaged))]
    called = few[0] if len(few) == 1 else f"not {roles.advantaged}"
    return GroupTable(
        path.name,
        LabelGroupCounts(n00, n01, n10, n11),
        (called, str(roles.advantaged)),
        f"{target} {roles.positive}",
        tuple(str(why) for why in people.left_out),
        replace(roles, disadvantaged=few[0] if len(few) == 1 else tuple(few)),
    )


def load_rows(source: str, table: GroupTable, drop: Sequence[str]) -> EncodedRows:
    """Read the features of a table's people, but for dropped columns; DataError for a column that is no feature."""
    roles = table.roles
    return datasets.load(
        source,
        protected=roles.protected,
        advantaged=roles.advantaged,
        disadvantaged=roles.disadvantaged,
        label=roles.label,
        positive=roles.positive,
        negative=roles.negative,
        drop=drop,
    )


def _left_open(column: ColumnValues, option: str) -> str:
    """Return the value that means 1, or raise DataError; which of two groups is advantaged changes no plan."""
    there = column.there
    if len(there) == 1:
        raise DataError(f"{column.where} is {there[0]!r} in every row; it must have two values")
    of_two = option == "--advantaged" and len(there) == 2 and not any(map(is_unknown, there))
    if of_two or there in (("0", "1"), ("false", "true")):
        return there[1]
    raise DataError(f"{column.where}: say which value with {option}; {column.known(4)}")
