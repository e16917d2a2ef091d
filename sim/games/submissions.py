"""The arrays that parties submit to a referee: taken, or refused if they are not what they should be."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from fairwall.rpc.arrays import ArrayError, from_message
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import array_pb2, error_pb2

_Kind = TypeVar("_Kind", bound=np.generic)


def take_array(message: array_pb2.Array, shape: tuple[int | None, ...], kind: type[_Kind]) -> NDArray[_Kind]:
    """Take an array of the type and shape that it should have; None stands for any length.

    Raises
    ------
    Refusal
        ``SUBMISSION_INVALID`` if it is no array, or another.
    """
    try:
        values = from_message(message)
    except ArrayError:
        raise Refusal(error_pb2.REASON_SUBMISSION_INVALID) from None
    wanted = tuple(size if length is None else length for length, size in zip(shape, values.shape, strict=False))
    if values.dtype != kind or values.ndim != len(shape) or values.shape != wanted:
        raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
    return values.astype(kind, copy=False)


def take_guess(message: array_pb2.Array, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Take a guess at a bit for each person, or for each model by each attack: zeros and ones alone.

    Raises
    ------
    Refusal
        ``SUBMISSION_INVALID`` if it is anything else.
    """
    values = take_array(message, shape, np.uint8)
    if not np.isin(values, (0, 1)).all():
        raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
    return values
