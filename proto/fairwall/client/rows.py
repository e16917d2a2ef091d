"""Puts predictions into the order in which a service has its rows, by the rows' ids."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairwall.client.predictions import Batch, numbers
from fairwall.compliance.v1.audit_service_pb2 import RowsTerms
from fairwall.errors import UserError
from fairwall.wire.rows import RowsError, digest_of, ordered_ids

__tracebackhide__ = True
"""pytest shows the arguments of what failed, and these are rows about people."""


@dataclass(frozen=True)
class KnownRows:
    """What a service's rows are known by.

    Parameters
    ----------
    public_columns : tuple of str
        Further columns that both sides hold, and may compare.
    ids_digest, table_digest : bytes
        The SHA-256 of the ids in their order, and of the ids and the public columns; the second is empty where there
        are none of these.
    column_digests : tuple of bytes
        For each public column the SHA-256 of the ids and that column; empty of a service that does not tell.
    """

    id_column: str
    public_columns: tuple[str, ...]
    ids_digest: bytes = field(repr=False)
    table_digest: bytes = field(repr=False)
    column_digests: tuple[bytes, ...] = field(default=(), repr=False)


def from_message(message: RowsTerms) -> KnownRows:
    """Read what the terms say of rows."""
    return KnownRows(
        message.id_column,
        tuple(message.public_columns),
        bytes(message.ids_digest),
        bytes(message.table_digest),
        tuple(message.column_digests),
    )


class Mismatch(ValueError):
    """Rows that are not those of the service, as far as its terms tell."""


def are_named(predictions: Any, ids: Sequence[object] | None, table: Any) -> bool:
    """Tell whether anything says whom predictions are about: ids, a table, or the labels of a Series or a frame.

    pandas' default labels, which only count the rows, say nothing.

    Raises
    ------
    ValueError
        If both ids and a table do.
    """
    if ids is not None and table is not None:
        raise ValueError("give ids or table, and not both: the table has the ids")
    return ids is not None or table is not None or _are_labelled(predictions)


def _are_labelled(predictions: Any) -> bool:
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(predictions, pandas.Series | pandas.DataFrame):
        return False
    rows, *columns = predictions.axes
    # People are as many as models or more: a frame that is taller than wide has them as its rows, or is refused.
    may_name = [rows] if columns and len(rows) > len(columns[0]) else [rows, *columns]
    return not all(_only_counts(labels, pandas) for labels in may_name)


def arranged(
    predictions: ArrayLike | Batch, ids: Sequence[object] | None, table: Any, known: KnownRows
) -> tuple[Batch, bytes]:
    """Put predictions into the order of ids.

    Parameters
    ----------
    predictions : Batch or array_like, shape (people,) or (models, people)
        Or a Series or a frame with ids for labels, of rows or of columns, where neither ``ids`` nor ``table`` is given.
    ids : sequence, optional
        One for each person, in the order of predictions.
    table : frame or mapping of str to sequence, optional
        The table that predictions were made from, in their order, with the columns that ``known`` names.

    Returns
    -------
    batch : Batch
        Of numbers, not checked any further.
    digest : bytes
        Which of ``known``'s the rows have.

    Raises
    ------
    ValueError
        For ids that name no rows, or as many as there are predictions; `Mismatch` where they are not the service's.
    """
    if ids is None and table is None:
        return _by_labels(predictions, known)
    columns: Mapping[str, Any] = {}
    if table is not None:
        ids = _column(table, known.id_column)
        columns = {column: _column(table, column) for column in known.public_columns}
    assert ids is not None, "or a table has them"
    batch = Batch.of(predictions)
    written, order = _written(ids)
    if batch.shape[1] != len(written):
        raise ValueError(f"{len(written)} ids are not one for each prediction of an array of shape {batch.shape}")
    digest = digest_of(written, order, columns)
    if columns and digest != known.table_digest and digest_of(written, order) == known.ids_digest:
        told = dict(zip(known.public_columns, known.column_digests, strict=False))
        others = [name for name in columns if digest_of(written, order, {name: columns[name]}) != told.get(name)]
        its = _listed(others or known.public_columns)
        raise Mismatch(f"the ids are the service's, but its {its} are others for some rows")
    if digest != (known.table_digest if columns else known.ids_digest):
        raise Mismatch("the ids are not those of the service's rows: some are missing, or more, or others")
    return replace(batch, order=order), digest


def _by_labels(predictions: Any, known: KnownRows) -> tuple[Batch, bytes]:
    """Find along which axis the labels are the service's ids."""
    pandas = sys.modules["pandas"]
    for axis, labels in enumerate(predictions.axes):
        if _only_counts(labels, pandas):
            continue
        try:
            written, order = ordered_ids(labels.to_series())
        except RowsError:
            continue
        if digest_of(written, order) == known.ids_digest:
            values, models = numbers(predictions), predictions.axes[1 - axis] if predictions.ndim == 2 else ()
            names = () if _only_counts(models, pandas) else tuple(map(str, models))
            return replace(Batch.of(values.T if axis == 0 else values), order=order, names=names), known.ids_digest
    raise Mismatch(
        "neither rows nor columns are labelled with the ids of the service's rows: some are missing, or more, or "
        "others; to trust the order of rows instead, pass predictions.to_numpy()"
    )


def _only_counts(labels: Any, pandas: Any) -> bool:
    return isinstance(labels, pandas.RangeIndex) and labels.equals(pandas.RangeIndex(len(labels)))


def _written(ids: Any) -> tuple[Sequence[bytes] | NDArray[np.bytes_], NDArray[np.intp]]:
    try:
        return ordered_ids(ids)
    except UserError as error:  # of rows, or of the file that they are read from
        raise ValueError(f"ids: {error}") from None


def _column(table: Any, column: str) -> Any:
    names = getattr(table, "column_names", getattr(table, "columns", (column,)))  # of Arrow, of frames, of a mapping
    try:
        if column in names:
            return table[column]
    except KeyError:
        pass
    raise ValueError(f"table: no column {column!r}, which the service compares")


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(map(repr, columns))
