"""Domains where models are used, their priority, and how much privacy a paper advises there.

Section VII-E of Watson, "From Statistical Disclosure Control to Fair AI" (arXiv 2601.17909), names four domains and
three priorities. The other domains are ours: each has the priority of the named ones that it resembles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from fairwall.errors import UserError, did_you_mean, nearest

_WIDEST = 2.0


class AdviceError(UserError):
    """Advice that cannot be given. The text names the option."""


@dataclass(frozen=True)
class Priority:
    """The priority of a domain, and the paper's range of epsilon for it.

    ``above`` and ``below`` are the range, its ends left out where `open_ends`; ``most`` is the largest epsilon that we
    advise, ours where the paper has no upper end; ``default`` is ours.
    """

    name: Literal["fairness", "privacy", "balance"]
    puts_first: str
    above: float
    below: float
    open_ends: bool
    most: float
    default: float

    def place(self, epsilon: float) -> Literal["below", "within", "above"]:
        """Return where an epsilon lies in the paper's range."""
        if epsilon < self.above or (self.open_ends and epsilon == self.above):
            return "below"
        if epsilon > self.below or (self.open_ends and epsilon == self.below):
            return "above"
        return "within"

    @property
    def range(self) -> str:
        """The paper's range of epsilon in words."""
        if math.isinf(self.below):
            return f"above {self.above:g}"
        return f"below {self.below:g}" if not self.above else f"from {self.above:g} to {self.below:g}"


FAIRNESS = Priority(
    "fairness",
    "fairness and models that can be explained, at the price of privacy or of more rows",
    1,
    math.inf,
    True,
    5.0,
    2.0,
)
PRIVACY = Priority("privacy", "strong privacy, at the price of utility; sites pool their rows", 0, 1, True, 1.0, 0.5)
BALANCE = Priority(
    "balance", "all three at once, adjusted by group, with openness about what is not reached", 1, 3, False, 3.0, 2.0
)


@dataclass(frozen=True)
class Domain:
    """A place where models are used, and whether the paper names it."""

    name: str
    priority: Priority
    named: bool


DOMAINS = {
    domain.name: domain
    for domain in (
        Domain("criminal-justice", FAIRNESS, named=True),
        Domain("lending", FAIRNESS, named=True),
        Domain("medical-research", PRIVACY, named=True),
        Domain("personalised-services", BALANCE, named=True),
        Domain("hiring", FAIRNESS, named=False),
        Domain("insurance", FAIRNESS, named=False),
        Domain("education", FAIRNESS, named=False),
        Domain("public-statistics", PRIVACY, named=False),
        Domain("advertising", BALANCE, named=False),
    )
}


def find_domain(name: str) -> Domain:
    """Return a domain by its name, however the words are joined; AdviceError with the known domains."""
    spelled = "-".join(name.lower().replace("_", " ").replace("-", " ").split()).replace("ized", "ised")
    if spelled in DOMAINS:
        return DOMAINS[spelled]
    hint = did_you_mean(nearest(spelled, DOMAINS)) or ";"
    raise AdviceError(f"--domain: unknown domain {name!r}{hint} choose one of: {', '.join(DOMAINS)}")


def check_numbers(epsilon: float, within: float) -> None:
    """Raise AdviceError for an epsilon or F about which no advice is possible."""
    if not 0 < epsilon < math.inf:
        raise AdviceError("--epsilon: must be above 0 and finite")
    if not 0 < within < _WIDEST:
        raise AdviceError(f"--within: must be above 0 and below {_WIDEST:g}, the width of a gap's range")
