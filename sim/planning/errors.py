"""The error of a plan."""

from __future__ import annotations

from fairwall.errors import UserError


class PlanError(UserError):
    """A plan that cannot be made. The text names the option."""
