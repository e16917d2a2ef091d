"""The metrics' names, as scenarios and reports write them, and their numbers on the wire."""

from __future__ import annotations

from typing import cast

from fairwall.laws.metric import METRICS, MetricError
from fairwall.wire.v1 import metric_pb2

_PREFIX = "METRIC_"

for _name in METRICS:
    if _PREFIX + _name.upper() not in metric_pb2.Metric.keys():  # noqa: SIM118
        raise MetricError(
            f"metric {_name}: missing is its value in proto/fairwall/wire/v1/metric.proto, and `make proto`"
        )


def name_of(number: int) -> str:
    """Turn METRIC_ABS_SP into "abs_sp"."""
    return metric_pb2.Metric.Name(number).removeprefix(_PREFIX).lower()


def number_of(name: str) -> metric_pb2.Metric:
    """Turn "abs_sp" into METRIC_ABS_SP; ValueError for a name that the wire does not know."""
    # The stubs type a number as a plain int where it is looked up, and as a Metric where it is used.
    return cast("metric_pb2.Metric", metric_pb2.Metric.Value(_PREFIX + name.upper()))
