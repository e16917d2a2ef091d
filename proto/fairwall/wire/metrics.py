"""The metrics' names, as scenarios and reports write them, and their numbers on the wire."""

from __future__ import annotations

from typing import cast

from fairwall.wire.v1 import metric_pb2

_PREFIX = "METRIC_"


def name_of(number: int) -> str:
    """Turn METRIC_ABS_SP into "abs_sp"."""
    return metric_pb2.Metric.Name(number).removeprefix(_PREFIX).lower()


def number_of(name: str) -> metric_pb2.Metric:
    """Turn "abs_sp" into METRIC_ABS_SP; ValueError for a name that the wire does not know."""
    # The stubs type a number as a plain int where it is looked up, and as a Metric where it is used.
    return cast("metric_pb2.Metric", metric_pb2.Metric.Value(_PREFIX + name.upper()))
