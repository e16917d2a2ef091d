"""Security games about fairness audits: play them from Python, and ask a compliance service.

What the parties of a game share, the wire, the RPC layer and the public mathematics, is imported by its own name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairwall.client import AuditClient, AuditRefused, AuditUnavailable
    from fairwall.errors import RunFailed, UserError
    from fairwall.runs import Plan, Run, plan_of, read_run, run, scenarios

__version__ = "0.1.0"

__all__ = [
    "AuditClient",
    "AuditRefused",
    "AuditUnavailable",
    "Plan",
    "Run",
    "RunFailed",
    "UserError",
    "plan_of",
    "read_run",
    "run",
    "scenarios",
]

_MODULES = {
    "fairwall.client": ("AuditClient", "AuditRefused", "AuditUnavailable"),
    "fairwall.errors": ("RunFailed", "UserError"),
    "fairwall.runs": ("Plan", "Run", "plan_of", "read_run", "run", "scenarios"),
}


def __getattr__(name: str) -> Any:
    """Import what a user asks for when it is first used: each party's process imports this package."""
    from importlib import import_module

    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'fairwall' has no attribute {name!r}")
