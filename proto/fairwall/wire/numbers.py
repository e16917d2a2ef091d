"""Numbers of requests and answers on the wire: the least epsilon, and the precision of answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairwall.wire.v1 import array_pb2, precision_pb2

if TYPE_CHECKING:
    from fairwall.laws.metrics.answer_precision import Precision

EPSILON_MIN = 1e-12
"""Least epsilon of a batch: below, a noise scale would leave the range of float64."""


def to_message(precision: Precision) -> precision_pb2.Precision:
    """Return the message of "float64", "float32" or a number of decimals."""
    if precision == "float64":
        return precision_pb2.Precision(float=array_pb2.ELEMENT_TYPE_FLOAT64)
    if precision == "float32":
        return precision_pb2.Precision(float=array_pb2.ELEMENT_TYPE_FLOAT32)
    return precision_pb2.Precision(decimals=precision)


def from_message(message: precision_pb2.Precision) -> Precision | None:
    """Return the precision in a message; None if it has none that is known."""
    if message.WhichOneof("form") == "decimals":
        return message.decimals
    match message.float:
        case array_pb2.ELEMENT_TYPE_FLOAT64:
            return "float64"
        case array_pb2.ELEMENT_TYPE_FLOAT32:
            return "float32"
        case _:
            return None
