"""What a check of a theorem found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Finding:
    """What holds, with how many cases were tried, one case against the claim, and the numbers behind both.

    The counterexample has its figures; it is empty where none was found.
    """

    found: str
    counterexample: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)


ROUNDING = 1e-9


def to_rounding(found: str, error: float, off: str = "off by", **figures: float) -> Finding:
    """Say what holds exactly, or by how much more than rounding it does not, behind the words of ``off``."""
    return Finding(found, "" if error < ROUNDING else f"{off} {error:g}", figures)
