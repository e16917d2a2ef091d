"""Which mechanism answers a batch best, and the table behind the choice."""

from __future__ import annotations

import math
from dataclasses import dataclass

from compliance.mechanisms.randomized_response import RandomizedResponse
from compliance.mechanisms.recommended import Recommended
from fairwall.errors import UserError
from fairwall.laws.exposure import REVEAL_MAX, Limit, is_known, revealed
from fairwall.laws.metric import find_metric
from fairwall.laws.response import turning_probability
from fairwall.laws.shares import Shares
from fairwall.laws.standings import MIDPOINT, Standing, choose, standings


class RecommendError(UserError):
    """A batch that nothing can be recommended for. The text names the option."""


@dataclass(frozen=True)
class Recommendation:
    """The best mechanism for a batch, and how all of them stand.

    Attributes
    ----------
    metric, n, queries, epsilon, delta, shares, reveal_max : the batch, as asked.
    chosen : the mechanism that ``recommended`` answers with.
    rows : every mechanism and the midpoint, the smallest median error first.
    told : what each of them gives away at most: the balanced accuracy of the best attack with the whole batch.
    revealed : the same of what ``recommended`` answers with, which may be another one once predictions are known.
    """

    metric: str
    n: int
    queries: int
    epsilon: float
    delta: float
    shares: Shares
    chosen: str
    rows: tuple[Standing, ...]
    reveal_max: float
    told: tuple[float, ...]
    revealed: float

    @property
    def midpoint_wins(self) -> bool:
        """Whether no mechanism is better, by more than a hundredth, than the public midpoint, which costs nothing."""
        errors = {row.name: row.median_error for row in self.rows}
        return errors[MIDPOINT] <= 1.01 * min(errors.values())

    @property
    def published_but_for(self) -> float | None:
        """One person in how many is turned over, where randomized response is chosen: all others' A is published."""
        return 1 / turning_probability(self.epsilon) if self.chosen == RandomizedResponse.name else None


def recommend(
    metric: str,
    n: int,
    queries: int,
    epsilon: float,
    delta: float,
    low: float,
    high: float,
    reveal_max: float = REVEAL_MAX,
    minimum_group: int | None = None,
) -> Recommendation:
    """Compare the mechanisms for a batch, from public numbers alone.

    Parameters
    ----------
    metric : a key of `fairwall.laws.metric.METRICS`.
    n : people whom the metric looks at, at least 3.
    queries : m, at least 1.
    epsilon, delta : the batch's whole budget: above 0 and finite; in [0, 1).
    low, high : the range of the disadvantaged group's share, above 0 and below 1.
    reveal_max : what a batch may give away, from 1/2 to 1, for no limit.
    minimum_group : how many people both groups have at least, by the policy. None where there is no policy: what a
        batch gives away is then told of the range of shares.
    """
    try:
        metric = find_metric(metric).name
    except ValueError as error:
        raise RecommendError(f"--metric: {error}") from None
    for option, fits, rule in (
        ("--people", n >= 3, "must be at least 3"),
        ("--models", queries >= 1, "must be at least 1"),
        ("--epsilon", 0 < epsilon < math.inf, "must be above 0 and finite"),
        ("--delta", 0 <= delta < 1, "must be at least 0 and below 1"),
        ("--share-min, --share-max", 0 < low <= high < 1, "must be above 0 and below 1, the smaller first"),
        (
            "--minimum-group",
            minimum_group is None or 1 <= minimum_group < n / 2,
            "must be at least 1 and less than half of --people",
        ),
        ("--reveal-max", 0.5 <= reveal_max <= 1, "must be at least 0.5 and at most 1"),
    ):
        if not fits:
            raise RecommendError(f"{option}: {rule}")
    shares = Shares(low, high, minimum_group or 1, by_policy=minimum_group is not None)
    rows = standings(metric, n, queries, epsilon, delta, shares)
    names = [row.mechanism for row in rows]
    return Recommendation(
        metric,
        n,
        queries,
        epsilon,
        delta,
        shares,
        choose(metric, n, queries, epsilon, delta, shares, Limit(reveal_max, shares)),
        rows,
        reveal_max,
        tuple(revealed(name, metric, n, queries, epsilon, delta, shares) if is_known(name) else 0.5 for name in names),
        Recommended(shares, reveal_max=reveal_max).reveals(metric, n, queries, epsilon, delta),
    )
