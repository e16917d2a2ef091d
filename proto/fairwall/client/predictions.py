"""Predictions as sent: some models at a time, so that ten million people take little memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, MappingView, Set
from dataclasses import dataclass, field, replace
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

from fairwall.arrays import Bytes
from fairwall.rpc import arrays, chunks
from fairwall.wire.v1.array_pb2 import ArrayHeader

__tracebackhide__ = True
"""Hides frames from pytest, which would print arguments: rows about people."""

_AT_ONCE = 1 << 20
"""Number of predictions read at a time, unless one model has more."""

_KEPT = 1 << 31
"""Most decisions whose bits are kept in memory: 256 MB."""

_DOUBLE = 8
_KINDS = {"U": "text", "S": "text", "str": "text", "TextColumn": "text", "c": "complex", "M": "times", "m": "times"}
"""The words for NumPy's kinds, and types, that are not numbers."""


@dataclass(frozen=True)
class PredictionBatch:
    """Predictions of models, read again each time they are checked, digested or sent.

    Parameters
    ----------
    shape : numbers of models and people.
    read : returns the predictions of the models in a range of numbers, shape (models, people), in stored order.
    dtype : element type on the wire.
    order : (people,), the stored position of each person to send, if the order differs.
    names : the models' names in a table, a mapping or a frame; empty for an array.
    labels : the people's labels, an Index of pandas, in stored order.
    """

    shape: tuple[int, int]
    read: Callable[[int, int], NDArray[Any]] = field(repr=False)
    dtype: np.dtype[Any]
    order: NDArray[np.intp] | None = field(default=None, repr=False)
    names: tuple[str, ...] = ()
    labels: Any = field(default=None, repr=False)

    @classmethod
    def of(cls, predictions: Any) -> PredictionBatch:
        """Return an array as a batch, without a copy; ValueError for data that cannot become an array."""
        if isinstance(predictions, PredictionBatch):
            return predictions
        given = numbers(predictions)
        array = np.atleast_2d(given)
        if not given.ndim or array.ndim != 2 or not array.size:
            raise ValueError(f"predictions must have the shape (people,) or (models, people), not {given.shape}")
        return cls(array.shape, lambda start, stop: array[start:stop], array.dtype)

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Yield the predictions of some models at a time, in the type and order of the wire."""
        for _, block in self._blocks():
            yield self._ordered(block).astype(self.dtype, copy=False)

    def in_least_type(self) -> PredictionBatch:
        """Return the batch in the smallest type that holds every prediction exactly: bits, float32 or float64.

        Bits are kept in memory, so that their source is not read again. ValueError if some are not numbers in [0, 1];
        the message names the first such column of a table.
        """
        types, bits = [np.dtype(np.bool_), np.dtype(np.float32), np.dtype(np.float64)], list[Bytes]()
        models, people = self.shape
        for start, block in self._blocks():
            fit = (block.min(axis=1) >= 0) & (block.max(axis=1) <= 1)  # false for NaN and infinity too
            if not fit.all():
                raise self._unfit(start, block, int(fit.argmin()))
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

    def _unfit(self, start: int, block: NDArray[Any], model: int) -> ValueError:
        missing, many = int(np.isnan(block[model]).sum()), block.shape[1]
        outside = many - int(((block[model] >= 0) & (block[model] <= 1)).sum()) - missing
        what = f"column {self.names[start + model]!r} of the predictions" if self.names else "predictions"
        return unfit(what, f"{missing:,} of {many:,} are missing, and {outside:,} outside", "numbers in [0, 1]")

    def _ordered(self, block: NDArray[Any]) -> NDArray[Any]:
        return block if self.order is None else np.take(block, self.order, axis=1)

    def _blocks(self) -> Iterator[tuple[int, NDArray[Any]]]:
        models, people = self.shape
        step = max(1, _AT_ONCE // people)
        return ((start, self.read(start, min(start + step, models))) for start in range(0, models, step))


def announced(predictions: NDArray[Any] | PredictionBatch) -> ArrayHeader:
    """Return the header of predictions; ArrayError as of `fairwall.rpc.arrays.first_header`."""
    if isinstance(predictions, PredictionBatch):
        predictions = np.broadcast_to(np.zeros((), predictions.dtype), predictions.shape)
    return arrays.header_of(predictions)


def encoded(predictions: NDArray[Any] | PredictionBatch, message: type[Message]) -> Iterator[bytes]:
    """Yield predictions in chunks, as `fairwall.rpc.chunks.encoded` does."""
    for block in predictions if isinstance(predictions, PredictionBatch) else (predictions,):
        yield from chunks.encoded(block, message, "predictions_chunk")


def in_order(given: Any, what: str) -> Any:
    """Return ordered data, of an iterator a list; ValueError for a set, masked values or rows not collected yet."""
    if hasattr(given, "to_native"):  # narwhals'
        given = given.to_native()
    kind = type(given).__name__
    if isinstance(given, Set | MappingView):
        raise ValueError(f"{what}: a {kind} has no order: give a list or an array")
    if hasattr(given, "collect"):  # of polars, Spark
        raise ValueError(f"{what}: a {kind} holds no rows yet: pass .collect()")
    if isinstance(given, np.ma.MaskedArray):
        if masked := int(np.ma.getmaskarray(given).sum()):
            raise ValueError(f"{what}: {masked:,} of {given.size:,} are masked: fill them in")
        return given.data
    if hasattr(given, "__arrow_c_stream__") and not hasattr(given, "__array__"):
        import pyarrow as pa

        try:
            return pa.table(given)
        except (pa.ArrowException, TypeError, ValueError):
            return pa.chunked_array(given)
    unlisted = isinstance(given, Iterable) and not hasattr(given, "__len__") and not isinstance(given, PredictionBatch)
    return list(given) if unlisted else given


def numbers(given: Any, what: str = "predictions") -> NDArray[Any]:
    """Return an array of numbers unchanged, and other data as float64, decimals as the nearest.

    ValueError, which quotes no value, if some are missing or not real numbers: text is not, whatever it spells.
    """
    given = in_order(given, what)
    if isinstance(given, list | tuple) and any(issubclass(kind, Iterable) for kind in {*map(type, given)} - {str}):
        found = [numbers(each, what) for each in given]
        if len({each.shape for each in found}) > 1:
            raise ValueError(f"{what}: must be as many of each model")
        return np.stack(found)
    if hasattr(given, "nnz"):
        raise ValueError(f"{what}: a {type(given).__name__} is sparse: pass .toarray()")
    try:
        if hasattr(given, "detach"):  # of torch, which may want gradients
            given = (given.float() if "bfloat16" in str(given.dtype) else given).numpy(force=True)
        array = np.asarray(given)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"{what}: a {type(given).__name__} is no array of numbers") from None
    if array.dtype.kind in "biuf":
        return array if array.itemsize <= _DOUBLE else array.astype(np.float64)
    if array.dtype.kind != "O":
        raise unfit(what, "they are " + _KINDS.get(array.dtype.kind, str(array.dtype)))
    if missing := sum(map(is_missing, array.flat)):
        raise unfit(what, f"{missing:,} of {array.size:,} are missing")
    if odd := {type(each) for each in array.flat if not isinstance(each, Real | Decimal | np.bool_)}:
        raise unfit(what, f"some are {min(_KINDS.get(kind.__name__, kind.__name__) for kind in odd)}")
    return array.astype(np.float64)


def is_missing(value: object) -> bool:
    """Return whether a value stands for none, in Python, NumPy or pandas."""
    if isinstance(value, Real | Decimal):
        return math.isnan(value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def unfit(what: str, problem: str, numbers: str = "numbers") -> ValueError:
    """Return the error for predictions that are not all numbers as required."""
    return ValueError(f"{what}: must be {numbers}, and none missing; {problem}")
