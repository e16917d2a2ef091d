"""Play security games about fairness audits from Python, and ask a compliance service.

The modules that the parties share (wire, RPC, mathematics) are imported by their full names.
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
    """Import a public name on first use, because every party's process imports this package."""
    from importlib import import_module

    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'fairwall' has no attribute {name!r}")
