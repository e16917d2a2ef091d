"""Predictions as they are sent: some models at a time, so that ten million people take little memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

from fairwall.rpc import arrays, chunks
from fairwall.tables import reading
from fairwall.tables.columns import names_of
from fairwall.tables.errors import DataError
from fairwall.wire.v1.array_pb2 import ArrayHeader

__tracebackhide__ = True
"""pytest shows the arguments of what failed, and these are rows about people."""

_AT_ONCE = 1 << 20
"""So many predictions, or those of one model, are taken at a time."""

_KEPT = 1 << 31
"""Of so many decisions the bits are kept: 256 MB."""


@dataclass(frozen=True)
class Batch:
    """Predictions of models, which are read each time that they are looked at, digested or sent.

    Parameters
    ----------
    shape : tuple of int
        How many models and people.
    read : callable
        Gives the predictions of the models from one number up to another, shape (models, people), as they lie.
    dtype : dtype
        As what they travel.
    order : ndarray of intp, shape (people,), optional
        Which of the people comes when, if not as they lie.
    names : tuple of str
        What a table, a mapping or a frame calls each model; empty of an array.
    """

    shape: tuple[int, int]
    read: Callable[[int, int], NDArray[Any]] = field(repr=False)
    dtype: np.dtype[Any]
    order: NDArray[np.intp] | None = field(default=None, repr=False)
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, predictions: Any) -> Batch:
        """Take an array, which is not copied, or what can become one; ValueError where it cannot."""
        if isinstance(predictions, Batch):
            return predictions
        array = np.atleast_2d(numbers(predictions))
        if array.ndim != 2 or not array.size:
            raise ValueError(
                f"predictions must have the shape (people,) or (models, people), not {np.shape(predictions)}"
            )
        return cls(array.shape, lambda start, stop: array[start:stop], array.dtype)

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Give the predictions of some models at a time, as they travel."""
        for _, block in self._blocks():
            yield self._ordered(block).astype(self.dtype, copy=False)

    def in_least_type(self) -> Batch:
        """Travel as bits, else as float32, where that is every prediction exactly, and else as float64.

        Bits are kept, and what they are made of is not read again.

        Raises
        ------
        ValueError
            If some are not numbers in [0, 1]; it names the first such column of a table.
        """
        types, bits = [np.dtype(np.bool_), np.dtype(np.float32), np.dtype(np.float64)], list[NDArray[np.uint8]]()
        models, people = self.shape
        for start, block in self._blocks():
            fit = (block.min(axis=1) >= 0) & (block.max(axis=1) <= 1)  # nor is NaN, or infinity
            if not fit.all():
                raise _unfit(self.names[start + int(fit.argmin())] if self.names else None)
            while len(types) > 1 and not (block.astype(types[0]) == block).all():
                del types[0]
            if types[0] == np.bool_ and models * people <= _KEPT:
                bits.append(np.packbits(self._ordered(block).astype(np.bool_), axis=1))
        if types[0] != np.bool_ or not bits:
            return replace(self, dtype=types[0])
        packed = np.concatenate(bits)

        def read(start: int, stop: int) -> NDArray[Any]:
            return np.unpackbits(packed[start:stop], axis=1, count=people).view(np.bool_)

        return replace(self, read=read, dtype=types[0], order=None)

    def _ordered(self, block: NDArray[Any]) -> NDArray[Any]:
        return block if self.order is None else np.take(block, self.order, axis=1)

    def _blocks(self) -> Iterator[tuple[int, NDArray[Any]]]:
        models, people = self.shape
        step = max(1, _AT_ONCE // people)
        return ((start, self.read(start, min(start + step, models))) for start in range(0, models, step))


def announced(predictions: NDArray[Any] | Batch) -> ArrayHeader:
    """Describe predictions as what they travel; ArrayError as of `fairwall.rpc.arrays.header_of`."""
    if isinstance(predictions, Batch):
        predictions = np.broadcast_to(np.zeros((), predictions.dtype), predictions.shape)
    return arrays.header_of(predictions)


def encoded(predictions: NDArray[Any] | Batch, message: type[Message]) -> Iterator[bytes]:
    """Cut predictions into chunks, as `fairwall.rpc.chunks.encoded` does."""
    for block in predictions if isinstance(predictions, Batch) else (predictions,):
        yield from chunks.encoded(block, message, "predictions_chunk")


def opened(predictions: Any, ids: Any) -> tuple[Any, Any]:
    """Take a table's columns as models, but for the one that ``ids`` names, which has the ids; all else stays as it is.

    Parameters
    ----------
    predictions : Any
        A table is the path of a file, an Arrow table, a mapping of names to arrays, or a frame; that of pandas only
        where ``ids`` is a name.

    Raises
    ------
    ValueError
        If there is no such table or column.
    """
    named = isinstance(ids, str)
    if isinstance(predictions, str | Path):
        columns = _of_file(Path(predictions))
    elif hasattr(predictions, "column_names"):  # Arrow's
        columns = predictions.column_names, predictions.__getitem__
    elif isinstance(predictions, Mapping):
        columns = list(predictions), predictions.__getitem__
    elif hasattr(predictions, "columns") and (named or not hasattr(predictions, "iloc")):
        columns = list(predictions.columns), predictions.__getitem__
    elif named:
        raise ValueError(f"ids={ids!r} is the name of a column, and predictions are no table")
    else:
        return predictions, ids
    names, column = columns
    if len(set(names)) < len(names):
        raise ValueError("two columns of the predictions have one name")
    if named and ids not in names:
        raise ValueError(f"predictions have no column {ids!r}; their columns are {names_of(names)}")
    models = tuple(name for name in names if not (named and name == ids))
    if not models:
        raise ValueError("predictions have no column of a model")
    return _of_columns(models, column), column(ids) if named else ids


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


def _of_columns(models: tuple[str, ...], column: Callable[[str], Any]) -> Batch:
    people = len(column(models[0]))
    if not people:
        raise ValueError("predictions have no rows")

    def values(name: str) -> NDArray[Any]:
        found = column(name)
        found = np.asarray(found.to_numpy() if hasattr(found, "to_numpy") else found)
        if found.dtype.kind not in "biuf":
            raise _unfit(name)
        if found.shape != (people,):
            raise ValueError("predictions have more rows, or fewer, than when they were first read")
        return found

    def read(start: int, stop: int) -> NDArray[Any]:
        first = values(models[start])
        return first[np.newaxis] if stop - start == 1 else np.stack([first, *map(values, models[start + 1 : stop])])

    return Batch((len(models), people), read, np.dtype(np.float64), names=models)


def numbers(predictions: Any) -> NDArray[Any]:
    """Take an array of numbers as it is, all else as float64; ValueError, which quotes none, where it is none."""
    if isinstance(predictions, np.ndarray) and predictions.dtype.kind in "biuf" and predictions.itemsize <= 8:
        return np.asarray(predictions)
    try:
        return np.asarray(predictions, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("predictions must be numbers in [0, 1], as many of each model") from None


def _unfit(column: str | None) -> ValueError:
    if column is None:
        return ValueError("predictions must be numbers in [0, 1]")
    return ValueError(f"column {column!r} of the predictions must have numbers in [0, 1], and none missing")
