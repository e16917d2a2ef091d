"""What a check of a theorem found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Finding:
    """What was tried, and the case against the claim if there is one.

    Attributes
    ----------
    found : what holds, with how many cases were tried.
    counterexample : one case with its figures; empty where none was found.
    figures : the numbers behind both.
    """

    found: str
    counterexample: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)
