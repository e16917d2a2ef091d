"""The protocol's methods, and their purposes by name.

A party gets its deals by ``Take<whose>Deal``, gets a table that many deals share by ``Get<which>Table``, and submits
its result by ``Submit<what>`` or ``Release<what>``.
"""

from __future__ import annotations

from typing import Any

from fairwall.rpc.access import SERVICES


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
