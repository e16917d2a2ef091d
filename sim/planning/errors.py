"""What a plan's errors are called."""

from __future__ import annotations

from fairwall.errors import UserError


class PlanError(UserError):
    """A plan that cannot be made. The text names the option."""
