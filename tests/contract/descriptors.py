"""Descriptors to break: what a file of the protocol imports, and room for a twin of it."""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool


def pool_of_imports(file: Any) -> descriptor_pool.DescriptorPool:
    """A pool with all that a file imports, and without the file: its broken twin can be added."""
    pool = descriptor_pool.DescriptorPool()
    for dependency in (descriptor_pb2.DESCRIPTOR, *reversed(_dependencies(file))):
        pool.AddSerializedFile(dependency.serialized_pb)
    return pool


def _dependencies(file: Any) -> list[Any]:
    """What a file imports, directly or not, the importer before the imported."""
    found: dict[str, Any] = {}
    for dependency in file.dependencies:
        if dependency.name != descriptor_pb2.DESCRIPTOR.name:
            for each in (dependency, *_dependencies(dependency)):
                found.pop(each.name, None)
                found[each.name] = each
    return list(found.values())
