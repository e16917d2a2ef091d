"""The search for less discriminatory alternatives: which of many candidates has the least gap at no less utility.

A service answers about all candidates at once, and draws their gaps from the joint posterior, given what it has
released. All here is counted from these draws, so it holds for whichever candidate is chosen: a posterior that is
right before a choice is right after it, since the choice is made of the same numbers. A candidate's *disparity* is how
far its gap is from that of equal treatment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairwall.laws.metric import find_metric
from fairwall.laws.quantiles import LEVEL

DRAWS = 400
"""So many times a service draws the gaps of all candidates."""

NAME_MAX = 100
"""So many characters has a candidate's name at most."""


@dataclass(frozen=True)
class Candidates:
    """What a search is told of the models that it is among.

    Parameters
    ----------
    names : each model's, in the order of the predictions; no two alike.
    utilities : how useful each is, such as its accuracy; more is better.
    baseline : the number of the model that others are to be better than.
    at_least : the utility that will do: at least one candidate has it.
    """

    names: tuple[str, ...]
    utilities: tuple[float, ...]
    baseline: int
    at_least: float

    def enough(self, at_least: float | None = None) -> NDArray[np.intp]:
        """Return which have at least so much utility, `at_least` by default: the most useful first.

        ValueError if none has.
        """
        utilities, least = np.array(self.utilities), self.at_least if at_least is None else at_least
        order = np.argsort(-utilities, kind="stable")
        found: NDArray[np.intp] = order[utilities[order] >= least]
        if not len(found):
            raise ValueError(f"no candidate has a utility of {least:g}: the most is {utilities.max():g}")
        return found


@dataclass(frozen=True, eq=False)
class Found:
    """What is known of all candidates together.

    Parameters
    ----------
    metric : a key of `fairwall.laws.metric.METRICS`.
    candidates : m of them.
    draws : ndarray, shape (draws, m)
        Gaps of the same people as they may be; NaN where nothing is known.
    """

    metric: str
    candidates: Candidates
    draws: NDArray[np.floating]

    @cached_property
    def disparities(self) -> NDArray[np.float64]:
        """How far the gaps drawn are from none, which of a ratio is 1, shape (draws, m)."""
        equal = 0.0 if find_metric(self.metric).bounded else 1.0
        return np.abs(self.draws.astype(np.float64) - equal)

    @cached_property
    def expected(self) -> NDArray[np.float64]:
        """Each candidate's disparity to expect, shape (m,)."""
        return np.asarray(self.disparities.mean(axis=0))

    @property
    def ends(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Between what numbers each gap is believed to lie in 95% of cases, also of a candidate that was chosen."""
        low, high = np.quantile(self.draws.astype(np.float64), [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
        return low, high

    def better(self, than: int) -> NDArray[np.float64]:
        """Return P(a candidate has less disparity than one of them), shape (m,); of itself and its twins 1/2."""
        other = self.disparities[:, [than]]
        found = (self.disparities < other).mean(axis=0) + (self.disparities == other).mean(axis=0) / 2
        return np.asarray(np.where(np.isnan(self.expected), np.nan, found))

    def shortlist(self, count: int, at_least: float | None = None) -> NDArray[np.intp]:
        """Return which of those that are useful enough are expected to have the least disparity: the least first.

        ValueError as of `Candidates.enough`.
        """
        enough = self.candidates.enough(at_least)
        found: NDArray[np.intp] = enough[np.argsort(self.expected[enough], kind="stable")[:count]]
        return found

    def least(self, at_least: float | None = None) -> int:
        """Return which of those that are useful enough is expected to have the least disparity.

        ValueError if none is useful enough, or nothing is known of gaps.
        """
        if not np.isfinite(self.expected).all():
            raise ValueError(f"nothing is known of these candidates' gaps together: {self.metric} of so few models")
        return int(self.shortlist(1, at_least)[0])

    def alike(self, at_least: float | None = None) -> list[int]:
        """Return which of those may as well have the least: with a probability of 5% and more. Errors as of `least`."""
        least = self.least(at_least)
        better = self.better(least)
        among = self.candidates.enough(at_least).tolist()
        return [each for each in among if each != least and better[each] >= 1 - LEVEL]

    @property
    def front(self) -> list[int]:
        """Which candidates no more useful one is expected to be better than: the most useful first."""
        found = list[int]()
        for each in self.candidates.enough(min(self.candidates.utilities)).tolist():
            if not found or self.expected[each] < self.expected[found[-1]]:
                found.append(each)
        return found

    def band(self, utilities: Sequence[float]) -> NDArray[np.float64]:
        """Return between what the least disparity at each utility is believed to lie in 95% of cases, shape (2, k)."""
        least = [self.disparities[:, self.candidates.enough(each)].min(axis=1) for each in utilities]
        return np.asarray(np.quantile(least, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=1))

    def records(self) -> list[dict[str, Any]]:
        """Give one record for each candidate, in their order.

        Returns
        -------
        list of dict
            ``model``, ``utility``; ``low`` and ``high``, between which its gap is believed to lie in 95% of cases, also
            of a candidate that was chosen by its answer; ``disparity``, what is to be expected of it; ``better``, the
            probability that it has less disparity than the baseline; whether it has ``enough`` utility, is on the
            ``front`` (none more useful is expected to have less disparity), and is ``alike`` the least: that one, or
            one that cannot be told apart from it.
        """
        (low, high), better = self.ends, self.better(self.candidates.baseline)
        enough, front, alike = set(self.candidates.enough().tolist()), set[int](), set[int]()
        if np.isfinite(self.expected).all():
            front, alike = set(self.front), {self.least(), *self.alike()}
        return [
            {
                "model": name,
                "utility": self.candidates.utilities[i],
                "low": float(low[i]),
                "high": float(high[i]),
                "disparity": float(self.expected[i]),
                "better": float(better[i]),
                "enough": i in enough,
                "front": i in front,
                "alike": i in alike,
            }
            for i, name in enumerate(self.candidates.names)
        ]
