"""What is found when reports are compared with what they follow from."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairwall.rpc.errors import Refusal

BY_DIGEST = "arrays were recorded by their digest alone"
UNHEARD = "reports of trials whose queries are in no transcript to their end"

TOLERANCE = 1e-6
"""How far apart floats may be that other versions or another processor computed, for each 1 that the larger one has."""

UNFIT = (ValueError, LookupError, TypeError, ArithmeticError, Refusal)
"""What computing again may end in: what was sent and taken need not make sense, as somebody may have written it for
us."""


class Contradiction(NamedTuple):
    """Something that is reported otherwise than it follows: where it is reported, and what."""

    where: str
    text: str


@dataclass(frozen=True)
class Recomputed:
    """What came of it: contradictions, what could not be computed again and why, and how many reports were compared."""

    contradictions: tuple[Contradiction, ...]
    notes: tuple[str, ...]
    reports: int


@dataclass
class Findings:
    """What was found so far."""

    contradictions: list[Contradiction] = field(default_factory=list)
    unchecked: Counter[str] = field(default_factory=Counter)
    reports: int = 0

    def same(self, where: str, what: str, reported: Any, again: Any) -> None:
        """Compare a value, or arrays of them; NaN is NaN."""
        if isinstance(again, np.ndarray):
            self._same_arrays(where, what, np.asarray(reported), again)
        elif not (reported == again or (reported != reported and again != again)):
            self.wrong(where, f"{what} is {reported!r}, recomputed {again!r}")

    def between(self, where: str, what: str, reported: float, least: float, most: float) -> None:
        """Compare a value with one that is known up to a little."""
        if not least <= reported <= most:
            again = repr(least) if least == most else f"{least!r} to {most!r}"
            self.wrong(where, f"{what} is {reported!r}, recomputed {again}")

    def wrong(self, where: str, text: str) -> None:
        """Add a contradiction."""
        self.contradictions.append(Contradiction(where, text))

    def not_checked(self, text: str) -> None:
        """Note what cannot be computed again."""
        self.unchecked[text] += 1

    def result(self) -> Recomputed:
        """Put together what came of it."""
        notes = [
            f"not checked: {text}" + f" (in {times} trials)" * (times > 1) for text, times in self.unchecked.items()
        ]
        if self.reports:
            notes.append("exempt: whom a party guesses and aims at is its own, how long a trial took the referee's")
        return Recomputed(tuple(self.contradictions), tuple(notes), self.reports)

    def _same_arrays(self, where: str, what: str, reported: NDArray[Any], again: NDArray[Any]) -> None:
        if reported.shape != again.shape:
            self.wrong(where, f"{what} has shape {reported.shape}, recomputed {again.shape}")
            return
        unlike = np.flatnonzero(~((reported == again) | ((reported != reported) & (again != again))))
        if len(unlike):
            at, more = unlike[0], f", and {len(unlike) - 1} more" * (len(unlike) > 1)
            self.wrong(
                where, f"{what}[{at}] is {float(reported.flat[at])!r}, recomputed {float(again.flat[at])!r}{more}"
            )
