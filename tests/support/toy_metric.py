"""A metric in one row, and a number on the wire: how much more often negatives are rightly rejected in one group.

``python tests/support/toy_metric.py MODULE ARGUMENT...`` runs a program that knows it.
"""

from __future__ import annotations

import sys
from importlib import import_module

from fairwall.rpc import kernels

if __name__ == "__main__":
    kernels.fix()  # before numpy is imported, as every party does it

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper

from fairwall.laws.metrics.metric import METRICS, Metric, MetricPart

TNR = Metric("tnr", "true negative rate gap", (MetricPart("correct", label=0),))


def numbered():
    """Do what `make proto` does with one value more."""
    from fairwall.wire.v1 import metric_pb2

    file = descriptor_pb2.FileDescriptorProto()
    metric_pb2.DESCRIPTOR.CopyToProto(file)
    file.enum_type[0].value.add(name="METRIC_TNR", number=13)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    metric_pb2.Metric = EnumTypeWrapper(pool.FindEnumTypeByName("fairwall.wire.v1.Metric"))


if __name__ == "__main__":
    module, *arguments = sys.argv[1:]
    METRICS["tnr"] = TNR
    numbered()
    sys.argv = [module, *arguments]
    import_module(module).main()
