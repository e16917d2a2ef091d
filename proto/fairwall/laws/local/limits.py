"""What a domain and a budget may be."""

from __future__ import annotations

from fairwall.errors import UserError

EPSILON_MAX = 700.0
"""The largest epsilon of one attribute: above it float64 has no number for e^epsilon."""


class LocalPrivacyError(UserError, ValueError):
    """A domain, a budget or values that no protocol can sanitise; the message is one line."""


def require_domain(k: int) -> None:
    """Refuse a domain with nothing to hide in it.

    LocalPrivacyError if k is less than 2.
    """
    if k < 2:
        raise LocalPrivacyError(f"a sensitive attribute needs a domain of at least 2 values, this one has {k}")


def require_epsilon(epsilon: float) -> None:
    """Refuse a budget that no protocol can be given.

    LocalPrivacyError if epsilon is not a number above 0 and at most `EPSILON_MAX`.
    """
    if not 0 < epsilon <= EPSILON_MAX:
        raise LocalPrivacyError(f"epsilon must be above 0 and at most {EPSILON_MAX:,g}, it is {epsilon:,g}")
