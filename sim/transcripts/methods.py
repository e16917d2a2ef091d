"""The protocol's methods, their purposes by name, and all of them as one `FileDescriptorSet` for other clients.

A party gets its deals by ``Take<whose>Deal``, gets a table that many deals share by ``Get<which>Table``, and submits
its result by ``Submit<what>`` or ``Release<what>``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from grpc_health.v1 import health_pb2

from fairwall.rpc.access import SERVICES
from fairwall.wire.v1 import error_pb2


def short(method: str) -> str:
    """Return a method's name without its service."""
    return method.rpartition("/")[2]


METHODS: dict[str, Any] = {
    f"/{service.full_name}/{method.name}": method for service in SERVICES for method in service.methods
}
"""The descriptor of every method of ours, by its name in the table of callers."""

DEALS = frozenset(name for name in METHODS if short(name).startswith("Take") and name.endswith("Deal"))
TABLES = frozenset(name for name in METHODS if short(name).startswith("Get") and name.endswith("Table"))
SUBMISSIONS = frozenset(name for name in METHODS if short(name).startswith(("Submit", "Release")))


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
