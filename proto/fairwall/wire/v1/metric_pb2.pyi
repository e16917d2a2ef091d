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
METRIC_UNSPECIFIED: Metric
METRIC_SP: Metric
METRIC_ABS_SP: Metric
METRIC_EO: Metric
METRIC_ABS_EO: Metric
