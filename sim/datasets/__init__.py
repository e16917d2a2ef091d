"""The tables that games are played on: three shipped ones, known formats, and users' own files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fairwall.errors import DataError, did_you_mean, nearest
from fairwall.plugins import Plugin, Registry
from fairwall.tables.people import check_roles
from fairwall.tables.reading import header, read
from sim.datasets.encoding import encode
from sim.datasets.formats import ACS_COVERAGE, ACS_INCOME, BIAS_IN_BIOS, LSAC, UTKFACE, Format
from sim.datasets.rows import EncodedRows
from sim.datasets.shipped import SHIPPED, NamedRoles, own

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FORMATS", "SHIPPED", "DataError", "EncodedRows", "load"]

_KNOWN = {known.defaults.name: known for known in (ACS_COVERAGE, ACS_INCOME, BIAS_IN_BIOS, LSAC, UTKFACE)}


def _checked(plugin: Plugin, known: Format) -> Format:
    """Return a plug-in's format, wrapped to check that it reads a table."""
    plugin.require(isinstance(known, Format), "is no Format")

    def read(path: Path, source: str) -> pa.Table:
        import pyarrow as pa

        found = plugin.call(known.read, path, source)
        plugin.require(isinstance(found, pa.Table), "read no table")
        return found

    return replace(known, read=read)


FORMATS: Registry[Format] = Registry("datasets", _KNOWN, _checked)
"""Formats of users' files, by the prefix before the path."""


def load(
    source: str,
    *,
    protected: str | None = None,
    advantaged: str | None = None,
    disadvantaged: str | tuple[str, ...] | None = None,
    label: str | None = None,
    positive: str | None = None,
    negative: str | tuple[str, ...] | None = None,
    missing_values: tuple[str, ...] = (),
    drop: Sequence[str] = (),
    include_protected: bool = False,
) -> EncodedRows:
    """Load a shipped table or a file under the public encoding.

    Text and boolean columns are categories, numbers are numbers. The protected column is a feature only on request (the
    last one, 1 for the advantaged); another column that determines the groups by itself never is. Values match by
    meaning (`fairwall.tables.values.meaning`): "1" is 1, 1.0 and true. A `DataError` of one line names what is wrong
    with the file, a column or a value, and what would be right.

    Parameters
    ----------
    source : "adult", "compas", "german"; ``FORMAT:PATH`` for a user's file in one of ``FORMATS``; or the path of a CSV
        (also ``.csv.gz``) or Parquet file, which has no defaults but for ``disadvantaged`` and ``drop``.
    advantaged, disadvantaged : the protected column's values for the two groups; other rows are left out.
        ``disadvantaged`` may be several, and is required where the column has more than two values. The defaults'
        groups are a pair: they hold where ``advantaged`` is not given.
    label, positive, negative : the outcome column, its favourable value and, where it has more than two, the others.
    missing_values : further texts that stand for a missing value.
    """
    asked = NamedRoles(protected, advantaged, disadvantaged, label, positive, tuple(drop), negative, missing_values)
    if source in SHIPPED:
        shipped, roles = SHIPPED[source], SHIPPED[source].roles(asked)
        columns = read(shipped.path, source, as_text={roles.protected, roles.label})
        return encode(source, columns, roles, include_protected=include_protected)
    name, _, where = source.partition(":")
    if name in FORMATS:
        if not where:
            raise DataError(f"{source}: say where the file is, as {name}:PATH")
        known = FORMATS[name]
        # An error states the file's place; a report only its name.
        roles = known.defaults.roles(asked)
        table = encode(source, known.read(Path(where), source), roles, include_protected=include_protected)
        return replace(table, name=name)
    path = Path(source)
    if not path.suffix and not path.exists():
        hint = did_you_mean(nearest(source, SHIPPED))
        raise DataError(f"{source}: neither a shipped table ({', '.join(SHIPPED)}) nor a file{hint}")
    there = header(path, source)
    roles = own(source, asked)
    check_roles(source, there, roles)
    # Dropped columns may be large, and are never kept.
    used = [column for column in there if column in (roles.protected, roles.label) or column not in roles.drop]
    columns = read(path, source, used, as_text={roles.protected, roles.label})
    table = encode(source, columns, replace(roles, drop=()), include_protected=include_protected)
    return replace(table, name=path.name)
