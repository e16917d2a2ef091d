from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from typing import ClassVar as _ClassVar

DESCRIPTOR: _descriptor.FileDescriptor

class Metric(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    METRIC_UNSPECIFIED: _ClassVar[Metric]
    METRIC_SP: _ClassVar[Metric]
    METRIC_ABS_SP: _ClassVar[Metric]
    METRIC_EO: _ClassVar[Metric]
    METRIC_ABS_EO: _ClassVar[Metric]
    METRIC_FPR: _ClassVar[Metric]
    METRIC_ABS_FPR: _ClassVar[Metric]
    METRIC_EODDS_MAX: _ClassVar[Metric]
    METRIC_EODDS_SUM: _ClassVar[Metric]
    METRIC_PPV: _ClassVar[Metric]
    METRIC_OAD: _ClassVar[Metric]
    METRIC_ABS_OAD: _ClassVar[Metric]
    METRIC_DI: _ClassVar[Metric]
METRIC_UNSPECIFIED: Metric
METRIC_SP: Metric
METRIC_ABS_SP: Metric
METRIC_EO: Metric
METRIC_ABS_EO: Metric
METRIC_FPR: Metric
METRIC_ABS_FPR: Metric
METRIC_EODDS_MAX: Metric
METRIC_EODDS_SUM: Metric
METRIC_PPV: Metric
METRIC_OAD: Metric
METRIC_ABS_OAD: Metric
METRIC_DI: Metric
