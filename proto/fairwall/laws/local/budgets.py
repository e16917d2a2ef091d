"""Valid domains and budgets of local privacy, and the split of a budget among several sensitive attributes.

One person's epsilons add up (sequential composition). Source of the two names: Arcolezi, Makhlouf, Palamidessi, DBSec
2023, section 4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

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


SPLITS = ("uniform", "k-based")
"""The named splits: equal parts, or parts proportional to the sizes of the domains."""

_SUM_TOLERANCE = 1e-9


def split(how: str | Sequence[float], domains: Sequence[int], epsilon: float) -> tuple[float, ...]:
    """Return each attribute's epsilon, in their order.

    LocalPrivacyError for arguments out of range.

    `how`: one of `SPLITS`, or a weight for each attribute: above 0, together 1. `domains`: how many values each
    attribute has, at least 2 each. `epsilon`: the whole budget, above 0.
    """
    if not domains:
        raise LocalPrivacyError("there is no sensitive attribute to split a budget among")
    for k in domains:
        require_domain(k)
    require_epsilon(epsilon)
    weights = _weights(how, domains)
    whole = math.fsum(weights)
    shares = tuple(epsilon * (weight / whole) for weight in weights)
    if min(shares) == 0:
        raise LocalPrivacyError(f"epsilon {epsilon:,g} is too little to be split among {len(domains)} attributes")
    return shares


def uniform_at_k_based(domains: Sequence[int], place: int, epsilon: float) -> float:
    """Return the budget whose uniform split gives one attribute the epsilon that k-based gives it of `epsilon`.

    Two splits of one budget protect the attribute differently, which alone may explain different results. This is the
    control for it, which the source lacks.

    It is ``epsilon * d * k[place] / sum(k)`` for d attributes; the attribute's own epsilon is ``epsilon * k[place] /
    sum(k)`` under both. Domains and errors are as of `split`.
    """
    return len(domains) * split("k-based", domains, epsilon)[place]


def _weights(how: str | Sequence[float], domains: Sequence[int]) -> Sequence[float]:
    if isinstance(how, str):
        if how not in SPLITS:
            raise LocalPrivacyError(f"unknown split {how!r}, choose one of: {', '.join(SPLITS)}, or give weights")
        return [1] * len(domains) if how == "uniform" else domains
    if len(how) != len(domains):
        raise LocalPrivacyError(f"{len(domains)} sensitive attributes need as many weights, there are {len(how)}")
    if not all(0 < weight < math.inf for weight in how):
        raise LocalPrivacyError("weights must be finite numbers above 0")
    if abs(math.fsum(how) - 1) > _SUM_TOLERANCE:
        raise LocalPrivacyError(f"weights must sum to 1, these sum to {math.fsum(how):.12g}")
    return how
