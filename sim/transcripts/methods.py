"""The protocol's methods, and what each is for, which its name says.

A party takes its deals by ``Take<whose>Deal``, takes a table that many deals share by ``Get<which>Table``, and hands in
what it has come to by ``Submit<what>`` or ``Release<what>``.
"""

from __future__ import annotations

from typing import Any

from fairwall.rpc.access import SERVICES


def short(method: str) -> str:
    """Give a method's name without its service."""
    return method.rpartition("/")[2]


METHODS: dict[str, Any] = {
    f"/{service.full_name}/{method.name}": method for service in SERVICES for method in service.methods
}
"""The descriptor of every method of ours, under the name that the table of callers has for it."""

DEALS = frozenset(name for name in METHODS if short(name).startswith("Take") and name.endswith("Deal"))
TABLES = frozenset(name for name in METHODS if short(name).startswith("Get") and name.endswith("Table"))
SUBMISSIONS = frozenset(name for name in METHODS if short(name).startswith(("Submit", "Release")))
