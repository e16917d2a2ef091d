"""The recommended mechanism for a batch, and the ranking behind the choice."""

from __future__ import annotations

import math
from dataclasses import dataclass

from compliance.mechanisms.randomized_response import RandomizedResponse
from compliance.mechanisms.recommended import Recommended
from fairwall.errors import UserError
from fairwall.laws.choice.prediction import MIDPOINT, MechanismRank, choose, standings
from fairwall.laws.metrics.group_size_range import Shares
from fairwall.laws.metrics.metric import find_metric
from fairwall.laws.noise.randomized_response import turning_probability
from fairwall.laws.privacy.exposure import REVEAL_MAX, Limit, is_known, revealed


class RecommendError(UserError):
    """A batch for which no recommendation is possible. The text names the option."""


@dataclass(frozen=True)
class MechanismAdvice:
    """The best mechanism for a batch, and the ranking of all.

    ``chosen`` is the mechanism with which ``recommended`` answers; ``rows`` have the smallest median error first.
    ``told`` is, for each row, the balanced accuracy of the best attack with the whole batch, and ``revealed`` the same
    for ``recommended``, which may choose another one once predictions are known.
    """

    metric: str
    n: int
    queries: int
    epsilon: float
    delta: float
    shares: Shares
    chosen: str
    rows: tuple[MechanismRank, ...]
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
        """The number of people per one turned over, where randomized response is chosen: all others' A is published."""
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
) -> MechanismAdvice:
    """Compare the mechanisms for a batch, from public numbers alone.

    The metric covers ``n`` people, at least 3, and there are ``queries`` models, at least 1. Epsilon, above 0 and
    finite, and delta, in [0, 1), are the whole batch's. ``low`` and ``high`` are the range of the disadvantaged group's
    share, in (0, 1). ``reveal_max`` is the limit on an attack's balanced accuracy, from 1/2 to 1, for no limit.
    ``minimum_group`` is both groups' least size by the policy; without a policy attacks are predicted from the range of
    shares.
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
    return MechanismAdvice(
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
