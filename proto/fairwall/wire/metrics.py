"""The metrics' names in scenarios and reports, and their numbers on the wire."""

from __future__ import annotations

import hashlib
from typing import cast

from fairwall import plugins
from fairwall.laws.metrics.metric import METRICS, MetricError
from fairwall.wire.v1 import metric_pb2

_PREFIX = "METRIC_"

for _name in METRICS:
    if _PREFIX + _name.upper() not in metric_pb2.Metric.keys():  # noqa: SIM118
        raise MetricError(
            f"metric {_name}: missing is its value in proto/fairwall/wire/v1/metric.proto, and `make proto`"
        )


_OTHERS, _MOST = 1 << 16, 1 << 30
"""Range of the numbers of plug-ins' metrics, far above ours; each is made from the name, so that both sides agree."""


def is_known(number: int) -> bool:
    """Return whether a number stands for a metric that is known here."""
    if number < _OTHERS:
        return number != metric_pb2.METRIC_UNSPECIFIED and number in metric_pb2.Metric.values()
    return any(number_of(name) == number for name in plugins.names("metrics"))


def name_of(number: int) -> str:
    """Return the name of a metric's number, "abs_sp" for METRIC_ABS_SP; ValueError for a number not known here."""
    if number < _OTHERS:
        return metric_pb2.Metric.Name(number).removeprefix(_PREFIX).lower()
    for name in plugins.names("metrics"):
        if number_of(name) == number:
            return name
    raise ValueError(f"there is no metric {number}")


def number_of(name: str) -> metric_pb2.Metric:
    """Return the number of a metric, METRIC_ABS_SP for "abs_sp"; ValueError for a name unknown to the wire."""
    if METRICS.has_of_others(name):
        made = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")
        return cast("metric_pb2.Metric", _OTHERS + made % (_MOST - _OTHERS))
    # The stubs type a number as a plain int where it is looked up, and as a Metric where it is used.
    return cast("metric_pb2.Metric", metric_pb2.Metric.Value(_PREFIX + name.upper()))
