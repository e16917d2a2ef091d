"""Findings of the comparison of reports with values recomputed from the messages."""

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
"""Largest difference of floats from other versions or processors, relative to the larger one or to 1."""

UNFIT = (ValueError, LookupError, TypeError, ArithmeticError, Refusal)
"""Errors that recomputing may raise: recorded messages need not make sense, since an external program may have sent
them."""


class Contradiction(NamedTuple):
    """A contradiction between a report and its recomputation: the place of the report, and a description."""

    where: str
    text: str


@dataclass(frozen=True)
class Recomputed:
    """The result of recomputing: contradictions, notes on what could not be recomputed, and reports compared."""

    contradictions: tuple[Contradiction, ...]
    notes: tuple[str, ...]
    reports: int


@dataclass
class Findings:
    """The findings so far."""

    contradictions: list[Contradiction] = field(default_factory=list)
    unchecked: Counter[str] = field(default_factory=Counter)
    reports: int = 0

    def same(self, where: str, what: str, reported: Any, again: Any) -> None:
        """Compare a reported value or array with the recomputed one; NaN equals NaN."""
        if isinstance(again, np.ndarray):
            self._same_arrays(where, what, np.asarray(reported), again)
        elif not (reported == again or (reported != reported and again != again)):
            self.wrong(where, f"{what} is {reported!r}, recomputed {again!r}")

    def between(self, where: str, what: str, reported: float, least: float, most: float) -> None:
        """Compare a reported value with a range."""
        if not least <= reported <= most:
            again = repr(least) if least == most else f"{least!r} to {most!r}"
            self.wrong(where, f"{what} is {reported!r}, recomputed {again}")

    def wrong(self, where: str, text: str) -> None:
        """Add a contradiction."""
        self.contradictions.append(Contradiction(where, text))

    def not_checked(self, text: str) -> None:
        """Note what cannot be recomputed."""
        self.unchecked[text] += 1

    def result(self) -> Recomputed:
        """Return the findings, with the notes in words."""
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
