"""The protocol as one `FileDescriptorSet`, for code generators and clients that do not use our files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from grpc_health.v1 import health_pb2

from fairwall.rpc.access import SERVICES
from fairwall.wire.v1 import error_pb2


def descriptor_set() -> FileDescriptorSet:
    """Return every file of the protocol and every imported file, each once and after its imports, without comments."""
    # No service imports the messages that refusals carry in the metadata.
    files = [*(service.file for service in SERVICES), error_pb2.DESCRIPTOR, health_pb2.DESCRIPTOR]
    described = FileDescriptorSet()
    seen: set[str] = set()
    for file in files:
        for each in _with_imports(file, seen):
            described.file.add().ParseFromString(each.serialized_pb)
    return described


def _with_imports(file: Any, seen: set[str]) -> Iterator[Any]:
    if file.name not in seen:
        seen.add(file.name)
        for imported in file.dependencies:
            yield from _with_imports(imported, seen)
        yield file
