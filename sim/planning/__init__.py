"""Plans of what a data set allows, made before budget is spent, for the holder of its protected attributes."""

from __future__ import annotations

from fairwall.errors import UserError


class PlanError(UserError):
    """A plan that cannot be made. The text names the option."""
