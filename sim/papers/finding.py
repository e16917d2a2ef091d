"""The finding of a theorem's check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class CheckResult:
    """The result of a check in words, with the number of cases; a counterexample, or ""; the figures of both."""

    found: str
    counterexample: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)


ROUNDING = 1e-9


def to_rounding(holds: str, error: float, off: str = "off by", **figures: float) -> CheckResult:
    """Return a finding that a claim holds exactly, or the error, after the words of ``off``, if above rounding."""
    return CheckResult(holds, "" if error < ROUNDING else f"{off} {error:g}", figures)
