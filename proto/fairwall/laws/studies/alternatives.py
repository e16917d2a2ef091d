"""Search for less discriminatory alternatives: the candidate with the least gap at no less utility.

A service answers about all candidates at once and draws their gaps from the joint posterior, given what it has
released. All results are computed from these draws, so they also hold for a candidate chosen by them. A candidate's
*disparity* is the distance of its gap from equal treatment's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Floats
from fairwall.laws.metrics.metric import find_metric
from fairwall.laws.noise.quantiles import LEVEL

DRAWS = 400
"""Number of joint draws of all candidates' gaps."""

NAME_MAX = 100
"""Most characters of a candidate's name."""


@dataclass(frozen=True)
class Candidates:
    """The candidates of a search, as the developer names them.

    `names`: in the order of the predictions; no duplicates. `utilities`: of each model, such as its accuracy; more is
    better. `baseline`: the number of the model that others should improve on. `at_least`: the utility required; at
    least one candidate has it.
    """

    names: tuple[str, ...]
    utilities: tuple[float, ...]
    baseline: int
    at_least: float

    def enough(self, at_least: float | None = None) -> NDArray[np.intp]:
        """Return the candidates with at least this utility, the most useful first; ValueError if there are none."""
        utilities, least = np.array(self.utilities), self.at_least if at_least is None else at_least
        order = np.argsort(-utilities, kind="stable")
        found: NDArray[np.intp] = order[utilities[order] >= least]
        if not len(found):
            raise ValueError(f"no candidate has a utility of {least:g}: the most is {utilities.max():g}")
        return found


@dataclass(frozen=True, eq=False)
class SearchPosterior:
    """The joint posterior draws of all candidates' gaps.

    `metric`: a key of `fairwall.laws.metrics.metric.METRICS`. `draws`: gaps of the same people, shape (draws,
    candidates); NaN where nothing is known.
    """

    metric: str
    candidates: Candidates
    draws: NDArray[np.floating]

    @cached_property
    def disparities(self) -> Floats:
        """Distances of the drawn gaps from equal treatment (0, or 1 for a ratio), shape (draws, m)."""
        equal = 0.0 if find_metric(self.metric).bounded else 1.0
        return np.abs(self.draws.astype(np.float64) - equal)

    @cached_property
    def expected(self) -> Floats:
        """Each candidate's expected disparity, shape (m,)."""
        return np.asarray(self.disparities.mean(axis=0))

    @property
    def ends(self) -> tuple[Floats, Floats]:
        """The ends of each gap's 95% credible interval, valid for a chosen candidate too."""
        low, high = np.quantile(self.draws.astype(np.float64), [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
        return low, high

    def better(self, than: int) -> Floats:
        """Return P(disparity below that of candidate `than`), shape (m,); 1/2 for that candidate and its duplicates."""
        other = self.disparities[:, [than]]
        found = (self.disparities < other).mean(axis=0) + (self.disparities == other).mean(axis=0) / 2
        return np.asarray(np.where(np.isnan(self.expected), np.nan, found))

    def shortlist(self, count: int, at_least: float | None = None) -> NDArray[np.intp]:
        """Return the `count` candidates of `Candidates.enough` with the least expected disparity, the least first."""
        enough = self.candidates.enough(at_least)
        found: NDArray[np.intp] = enough[np.argsort(self.expected[enough], kind="stable")[:count]]
        return found

    def least(self, at_least: float | None = None) -> int:
        """Return the sufficiently useful candidate with the least expected disparity; ValueError if none or unknown."""
        if not np.isfinite(self.expected).all():
            raise ValueError(f"nothing is known of these candidates' gaps together: {self.metric} of so few models")
        return int(self.shortlist(1, at_least)[0])

    def alike(self, at_least: float | None = None) -> list[int]:
        """Return the candidates with less disparity than `least` with probability 5% or more. Errors as of `least`."""
        least = self.least(at_least)
        better = self.better(least)
        among = self.candidates.enough(at_least).tolist()
        return [each for each in among if each != least and better[each] >= 1 - LEVEL]

    @property
    def front(self) -> list[int]:
        """The candidates whose expected disparity is below every more useful one's, the most useful first."""
        found = list[int]()
        for each in self.candidates.enough(min(self.candidates.utilities)).tolist():
            if not found or self.expected[each] < self.expected[found[-1]]:
                found.append(each)
        return found

    def band(self, utilities: Sequence[float]) -> Floats:
        """Return the ends of the 95% credible interval of the least disparity at each utility, shape (2, k)."""
        least = [self.disparities[:, self.candidates.enough(each)].min(axis=1) for each in utilities]
        return np.asarray(np.quantile(least, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=1))

    def records(self) -> list[dict[str, Any]]:
        """Return one record per candidate, in their order.

        Keys: ``model``, ``utility``; ``low`` and ``high``, the 95% interval of the gap, valid for a chosen candidate
        too; ``disparity``, its expectation; ``better``, the probability of less disparity than the baseline's;
        ``enough``, whether the utility suffices; ``front``, whether none more useful is expected to have less
        disparity; ``alike``, whether the candidate is `least` or indistinguishable from it.
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
