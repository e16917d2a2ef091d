"""Valid domains and budgets of local privacy."""

from __future__ import annotations

from fairwall.errors import UserError

EPSILON_MAX = 700.0
"""Largest epsilon of one attribute: above, e^epsilon overflows float64."""


class LocalPrivacyError(UserError, ValueError):
    """A domain, a budget or values that no protocol can sanitise; the message is one line."""


def require_domain(k: int) -> None:
    """Raise LocalPrivacyError for a domain of fewer than 2 values: nothing to hide."""
    if k < 2:
        raise LocalPrivacyError(f"a sensitive attribute needs a domain of at least 2 values, this one has {k}")


def require_epsilon(epsilon: float) -> None:
    """Raise LocalPrivacyError unless epsilon is above 0 and at most `EPSILON_MAX`."""
    if not 0 < epsilon <= EPSILON_MAX:
        raise LocalPrivacyError(f"epsilon must be above 0 and at most {EPSILON_MAX:,g}, it is {epsilon:,g}")
