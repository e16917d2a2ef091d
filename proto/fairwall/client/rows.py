"""Match a caller's rows with the service's, and put predictions into the order of the service's rows.

Labels of Series and frames, ``ids=``, ``table=`` and a column of ids all identify rows. If several are given, they must
agree, row by row, or are refused; pandas' default labels, which only count rows and have no name, identify nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairwall.client.predictions import PredictionBatch, in_order, numbers
from fairwall.compliance.v1.audit_service_pb2 import RowsTerms
from fairwall.errors import DataError, UserError
from fairwall.tables import reading
from fairwall.tables.columns import names_of
from fairwall.wire.rows import as_array, digest_of, id_text, listed, order_of, ordered_ids

__tracebackhide__ = True
"""Hides frames from pytest, which would print arguments: rows about people."""

_LONGEST = 20
"""Most digits of ids that are tried with leading zeros, for at most `_MANY` people, if ids do not match."""
_MANY = 1 << 17

_ONE_ORDER = "put both in one order, or pass arrays (.to_numpy()), whose order is then meant"


@dataclass(frozen=True)
class KnownRows:
    """The description of a service's rows.

    Parameters
    ----------
    public_columns : further columns that both sides hold, and may compare.
    ids_digest : SHA-256 of the ids in their order.
    table_digest : SHA-256 of the ids and the public columns; empty without public columns.
    column_digests : for each public column the SHA-256 of the ids and that column; empty from an older service.
    """

    id_column: str
    public_columns: tuple[str, ...]
    ids_digest: bytes = field(repr=False)
    table_digest: bytes = field(repr=False)
    people: int
    column_digests: tuple[bytes, ...] = field(default=(), repr=False)


def from_message(message: RowsTerms, people: int) -> KnownRows:
    """Return the description of rows in a service's terms."""
    columns, digests = tuple(message.public_columns), (message.ids_digest, message.table_digest)
    return KnownRows(message.id_column, columns, *digests, people, tuple(message.column_digests))


class Mismatch(ValueError):
    """Rows that differ from the service's, according to its terms."""


def opened(predictions: Any, ids: Any, id_column: str | None = None) -> tuple[Any, Any]:
    """Return a table's columns as models, without the ids, and the ids; other predictions stay as they are.

    ValueError if there is no such table or column, or ids have no order, or contradict a column or each other. A table
    is the path of a file, an Arrow table, a mapping of names to arrays, or a frame; a frame of pandas only if one of
    its columns has the ids: the column named by ``ids``, or by the service in ``id_column``.
    """
    named = ids if isinstance(ids, str) else id_column
    labels = None
    if isinstance(predictions, str | Path):
        columns = _of_file(Path(predictions))
    elif hasattr(predictions, "column_names"):  # Arrow's
        columns = predictions.column_names, predictions.__getitem__
    elif isinstance(predictions, Mapping):
        held = {name: in_order(one, _column_of(name)) for name, one in predictions.items()}
        columns, labels = (list(held), held.__getitem__), labels_of(held)
    elif named and named not in columns_of(predictions) and named == getattr(labels_of(predictions), "name", None):
        return predictions, predictions.index
    elif hasattr(predictions, "columns") and (named or not hasattr(predictions, "iloc")):
        columns, labels = (list(predictions.columns), predictions.__getitem__), labels_of(predictions)
    elif named:
        raise ValueError(f"ids={ids!r} is the name of a column, and predictions are no table")
    else:
        kinds = {*map(type, predictions)} if isinstance(predictions, list | tuple) else ()
        if any(hasattr(kind, "iloc") or hasattr(kind, "to_native") for kind in kinds):
            labels = common({f"model {number}": model for number, model in enumerate(predictions)})
            predictions = replace(PredictionBatch.of(predictions), labels=labels)
        return predictions, _one_each(ids)
    names, column = columns
    if len(set(names)) < len(names):
        raise ValueError("two columns of the predictions have one name")
    if named and named not in names:
        raise ValueError(f"predictions have no column {named!r}; their columns are {names_of(names)}")
    models = tuple(name for name in names if name not in (named, id_column))
    if not models:
        raise ValueError("predictions have no column of a model")
    own = _one_each(column(named) if named else ids)
    other = column(id_column) if id_column and named != id_column and id_column in names else ids
    if named and not isinstance(other, str | None) and (row := differing(own, other := _one_each(other))):
        raise ValueError(_contradiction(f"ids and {_column_of(id_column)}", own, other, row))
    return _of_columns(models, column, labels), own


def are_named(predictions: Any, ids: Any, table: Any) -> bool:
    """Return whether ids, a table or labels identify the people of predictions."""
    labels = [predictions.labels] if isinstance(predictions, PredictionBatch) else _axes(predictions)
    return ids is not None or table is not None or any(map(say, labels))


def columns_of(predictions: Any) -> Sequence[Any]:
    """Return the column names of the predictions that `opened` returns; empty if they have none."""
    return predictions.names if isinstance(predictions, PredictionBatch) else list(getattr(predictions, "columns", ()))


def labels_of(given: Any) -> Any:
    """Return the labels of a Series, a frame or a mapping's Series, an Index of pandas; None if none is there."""
    if isinstance(given, Mapping):
        return common({f"column {name!r}": one for name, one in given.items()})
    pandas, given = sys.modules.get("pandas"), given.to_native() if hasattr(given, "to_native") else given
    return given.index if pandas is not None and isinstance(given, pandas.Series | pandas.DataFrame) else None


def common(named: Mapping[str, Any]) -> Any:
    """Return the labels that all named data agree on, None if none has any; ValueError if two contradict."""
    found, first = None, ""
    for what, given in named.items():
        labels = labels_of(given)
        if labels is None or (found is not None and _is_silent(labels, found)):
            continue
        if found is not None and not _is_silent(found, labels):
            row = differing(found, labels)
            raise ValueError(_contradiction(f"the labels of {first} and {what}", found, labels, row))
        found, first = labels, what
    return found


def arranged(
    predictions: ArrayLike | PredictionBatch, ids: Sequence[object] | None, table: Any, known: KnownRows
) -> tuple[PredictionBatch, bytes]:
    """Return predictions in the order of ids, and the digest of the rows in this order; predictions are not checked.

    Labels of predictions, a Series or a frame, are ids if neither ``ids`` nor ``table`` is given, and else agree. The
    table is the one that predictions were made from, in their order, with the columns that ``known`` names. ValueError
    for ids that identify no rows, are not one for each prediction, or contradict labels or each other; `Mismatch` if
    they are not the service's.
    """
    sides = _sides(predictions)
    if ids is None and table is None:
        return _by_labels(sides, known)
    given, columns, what = ids, dict[str, Any](), "ids"
    if table is not None:
        what, given = "table", _one_each(column_of(table, known.id_column))
        columns = {column: column_of(table, column) for column in known.public_columns}
        if ids is not None and (row := differing(ids, given)):
            raise ValueError(_contradiction("ids and table", ids, given, row))
    try:
        written, order = ordered_ids(given)
    except UserError as error:  # from rows, or from the file that holds these
        raise ValueError(f"ids: {error}") from None
    beside = [labels for labels in map(labels_of, (ids, table)) if labels is not None]
    batch = _side(sides, given, beside, what, known)
    digest = digest_of(written, order, columns)
    if columns and digest != known.table_digest and digest_of(written, order) == known.ids_digest:
        told = dict(zip(known.public_columns, known.column_digests, strict=False))
        others = [name for name in columns if digest_of(written, order, {name: columns[name]}) != told.get(name)]
        its = ", ".join(map(repr, others or known.public_columns))
        raise Mismatch(f"the ids are the service's, but its {its} are others for some rows")
    if digest != (known.table_digest if columns else known.ids_digest):
        raise Mismatch(f"the ids are not those of the service's rows: {_others(written, known)}")
    return replace(batch, order=order, labels=None), digest


def _sides(predictions: Any) -> list[PredictionBatch]:
    """Return predictions with people along each axis that may have people, with the axis's labels."""
    axes = _axes(predictions)
    if not axes or predictions.ndim == 1:
        return [replace(PredictionBatch.of(predictions), labels=axes[0])] if axes else [PredictionBatch.of(predictions)]
    values, sides = numbers(predictions), list[PredictionBatch]()
    for axis, labels in enumerate(axes):
        models = predictions.axes[1 - axis]
        names = () if _only_count(models) else tuple(map(str, models))
        sides.append(replace(PredictionBatch.of(values if axis else values.T), labels=labels, names=names))
    return sides


def _axes(predictions: Any) -> list[Any]:
    """Return the labels of each axis of a Series or frame that may have people: as many as models, or more."""
    if isinstance(predictions, Mapping) or labels_of(predictions) is None:
        return []
    rows, *columns = predictions.axes
    return [rows] if columns and len(rows) > len(columns[0]) else [rows, *columns]


def _side(
    sides: Sequence[PredictionBatch], ids: Any, others: Sequence[Any], what: str, known: KnownRows
) -> PredictionBatch:
    """Return the predictions along the axis with as many people as ids, and with labels that agree."""
    found = [side for side in sides if side.shape[1] == len(ids)]
    if not found:
        raise ValueError(f"{len(ids)} ids are not one for each prediction of an array of shape {sides[-1].shape}")
    rows = [_contradicted(side.labels, ids, others, known) for side in found]
    agreeing = [side for side, row in zip(found, rows, strict=True) if not row and say(side.labels)]
    if len(found) > 1 and len(agreeing) != 1:
        raise ValueError("a frame with as many models as people does not say which are which: pass .to_numpy(), or .T")
    if len(found) == 1 and rows[0]:
        told = _contradiction(f"the labels of predictions and {what}", found[0].labels, ids, rows[0])
        raise ValueError(f"{told}; to use {what} alone, pass predictions.to_numpy(), or X.reset_index(drop=True)")
    return (agreeing or found)[0]


def _contradicted(labels: Any, ids: Any, others: Sequence[Any], known: KnownRows) -> int:
    """Return the first row, from 1, whose label differs from its id and from the ids' own labels; 0 if none does."""
    if labels is None or (any(map(labels.equals, others)) and labels.name != known.id_column):
        return 0
    if _only_count(labels):
        return next((differing(labels, its) for its in others if not _is_silent(labels, its)), 0)
    return differing(labels, ids)


def _by_labels(sides: Sequence[PredictionBatch], known: KnownRows) -> tuple[PredictionBatch, bytes]:
    """Return predictions along the axis whose labels are the service's ids, in the ids' order, and the ids' digest."""
    why = ""
    for side in (side for side in sides if say(side.labels)):
        try:
            written, order = ordered_ids(side.labels.to_series())
        except UserError as error:
            why = why or str(error)
            continue
        if digest_of(written, order) == known.ids_digest:
            return replace(side, order=order, labels=None), known.ids_digest
        why = _others(written, known)
    raise Mismatch(
        f"neither rows nor columns are labelled with the ids of the service's rows: {why}; to trust the order of rows "
        "instead, pass predictions.to_numpy()"
    )


def differing(one: Any, other: Any) -> int:
    """Return the first row, from 1, where two columns of ids differ; 0 if they are the same in the same order."""
    columns = [each.to_series() if hasattr(each, "to_flat_index") else each for each in (one, other)]  # an Index
    a, b = map(as_array, columns)
    if a is not None and b is not None and len(a) == len(one) == len(other) and np.array_equal(a, b):
        return 0
    texts = ([*map(id_text, listed(each))] for each in columns)
    return next((row for row, (a, b) in enumerate(zip_longest(*texts), 1) if a != b), 0)


def _contradiction(what: str, one: Any, other: Any, row: int) -> str:
    a, b = (sorted(map(id_text, listed(each))) for each in (one, other))
    how = "the same in another order" if a == b else f"{len(a):,} and {len(b):,}" if len(a) != len(b) else "others"
    return f"{what} contradict each other, {how}: row {row} is the first that differs; {_ONE_ORDER}"


def _others(written: Sequence[bytes] | NDArray[np.bytes_], known: KnownRows) -> str:
    """Describe the difference between ids and the service's, of which only a digest is known."""
    if len(written) != known.people:
        return f"{len(written):,} are given, and the service has {known.people:,}"
    ids = written.tolist() if isinstance(written, np.ndarray) else written
    if len(ids) <= _MANY and any(each.isdigit() for each in ids):
        widest = max(len(each) for each in ids if each.isdigit())
        for width in (1, *range(widest, _LONGEST + 1)):
            spelt = [each.lstrip(b"0").zfill(width) if each.isdigit() else each for each in ids]
            if digest_of(spelt, order_of(spelt)) == known.ids_digest:
                return "they differ in leading zeros alone, which numbers lose: read ids as text (dtype=str)"
    return f"as many, {len(written):,}, but some are others, or in another spelling"


def say(labels: Any) -> bool:
    """Return whether labels identify rows: there are some, and they do more than count."""
    return labels is not None and not _only_count(labels)


def _only_count(labels: Any) -> bool:
    """Return whether labels are pandas' default: 0, 1, 2, ..., without the name that a column of ids would have."""
    own = sys.modules["pandas"].RangeIndex(len(labels))
    return isinstance(labels, type(own)) and labels.name is None and bool(labels.equals(own))


def _is_silent(labels: Any, other: Any) -> bool:
    """Return whether labels add nothing to others: they are equal, or count rows and the others are no permutation."""
    if labels.equals(other):
        return True
    return _only_count(labels) and not (len(labels) == len(other) and bool(labels.isin(other).all()))


def _one_each(ids: Any) -> Any:
    """Return ids in an order, one a row, or None for none; ValueError for ids without an order."""
    ids, shape = in_order(ids, "ids"), getattr(ids, "shape", ())
    if ids is not None and (isinstance(ids, Mapping | str | bytes) or not hasattr(ids, "__len__") or len(shape) > 1):
        kind = f"{type(ids).__name__} {shape or ''}".strip()
        raise ValueError(f"ids: must be one a row, in a list, an array or a column, not {kind}")
    return ids


def column_of(table: Any, column: str, what: str = "table") -> Any:
    """Return a column of a frame, Arrow table or mapping, or the index of this name; ValueError if none is there."""
    table = in_order(table, what)
    names = getattr(table, "column_names", getattr(table, "columns", (column,)))  # Arrow, frames, a mapping
    labels = labels_of(table)
    named = labels is not None and labels.name == column
    try:
        found = table[column] if column in names else labels if named else None
    except (KeyError, IndexError, TypeError):
        found = None
    if found is None:
        raise ValueError(f"{what}: no column {column!r}" + (", which the service compares" if what == "table" else ""))
    found = in_order(found, f"{what}: column {column!r}")
    if named and (row := differing(labels, found)):
        raise ValueError(_contradiction(f"the labels of {what} and its column {column!r}", labels, found, row))
    return found


def _column_of(name: object) -> str:
    return f"column {name!r} of the predictions"


def _of_file(path: Path) -> tuple[Sequence[str], Callable[[str], Any]]:
    def column(name: str) -> Any:
        try:
            return reading.column(path, str(path), name)
        except DataError as error:
            raise ValueError(f"predictions: {error}") from None

    try:
        return reading.header(path, str(path)), column
    except DataError as error:
        raise ValueError(f"predictions: {error}") from None
    except ModuleNotFoundError:
        raise ImportError("a file of predictions needs pyarrow: pip install 'fairwall[tables]'") from None


def _of_columns(models: tuple[str, ...], column: Callable[[str], Any], labels: Any) -> PredictionBatch:
    people = len(column(models[0]))
    if not people:
        raise ValueError("predictions have no rows")

    def values(name: str) -> NDArray[Any]:
        found = numbers(column(name), _column_of(name))
        if found.shape != (people,):
            raise ValueError(f"{_column_of(name)}: has the shape {found.shape}, and the first one {(people,)}")
        return found

    def read(start: int, stop: int) -> NDArray[Any]:
        first = values(models[start])
        return first[np.newaxis] if stop - start == 1 else np.stack([first, *map(values, models[start + 1 : stop])])

    names = tuple(map(str, models))
    return PredictionBatch((len(models), people), read, np.dtype(np.float64), names=names, labels=labels)
