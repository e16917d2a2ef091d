"""The command ``fairwall recommend``: which mechanism answers a batch best, and the table behind the choice."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compliance.mechanisms.randomized_response import RandomizedResponse
from compliance.mechanisms.recommended import (
    MIDPOINT,
    Standing,
    choose,
    midpoint,
    standings,
)
from fairwall.laws.metric import METRICS
from fairwall.laws.response import turning_probability
from fairwall.laws.shares import Shares

if TYPE_CHECKING:
    from rich.console import Group


class RecommendError(ValueError):
    """A batch that nothing can be recommended for. The text names the option."""


@dataclass(frozen=True)
class Recommendation:
    """The best mechanism for a batch, and how all of them stand.

    Parameters
    ----------
    metric, n, queries, epsilon, delta, shares
        The batch, as asked.
    chosen
        The mechanism that ``recommended`` answers with.
    rows
        Every mechanism and the midpoint, the smallest median error first.
    """

    metric: str
    n: int
    queries: int
    epsilon: float
    delta: float
    shares: Shares
    chosen: str
    rows: tuple[Standing, ...]

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
    metric: str, n: int, queries: int, epsilon: float, delta: float, low: float, high: float
) -> Recommendation:
    """Compare the mechanisms for a batch, from public numbers alone.

    Parameters
    ----------
    metric
        A key of `fairwall.laws.metric.METRICS`.
    n
        People whom the metric looks at, at least 3.
    queries
        m, at least 1.
    epsilon, delta
        The batch's whole budget: above 0 and finite; in [0, 1).
    low, high
        The range of the disadvantaged group's share, above 0 and below 1.

    Raises
    ------
    RecommendError
        For an argument out of range.
    """
    if metric not in METRICS:
        raise RecommendError(f"--metric: unknown metric {metric!r}, choose one of: {', '.join(METRICS)}")
    for option, fits, rule in (
        ("--n", n >= 3, "must be at least 3"),
        ("--queries", queries >= 1, "must be at least 1"),
        ("--epsilon", 0 < epsilon < math.inf, "must be above 0 and finite"),
        ("--delta", 0 <= delta < 1, "must be at least 0 and below 1"),
        ("--share-min, --share-max", 0 < low <= high < 1, "must be above 0 and below 1, the smaller first"),
    ):
        if not fits:
            raise RecommendError(f"{option}: {rule}")
    shares = Shares(low, high)
    return Recommendation(
        metric,
        n,
        queries,
        epsilon,
        delta,
        shares,
        choose(metric, n, queries, epsilon, delta, shares),
        standings(metric, n, queries, epsilon, delta, shares),
    )


_GUARANTEES = {"pure": "ε", "approximate": "ε, δ", "none": "none"}


def as_json(recommendation: Recommendation) -> dict[str, Any]:
    """Return a recommendation as one JSON object."""
    return {
        "metric": recommendation.metric,
        "n": recommendation.n,
        "queries": recommendation.queries,
        "epsilon": recommendation.epsilon,
        "delta": recommendation.delta,
        "shares": [recommendation.shares.low, recommendation.shares.high],
        "recommended": recommendation.chosen,
        "midpoint_wins": recommendation.midpoint_wins,
        "published_but_for_one_in": recommendation.published_but_for,
        "mechanisms": [
            {
                "mechanism": row.name,
                "guarantee": row.guarantee,
                "median_error": row.median_error,
                "mean_error": row.mean_error,
                "worst_ratio_to_midpoint": row.worst_ratio,
            }
            for row in recommendation.rows
        ],
    }


def as_text(recommendation: Recommendation) -> Group:
    """Return a recommendation as a table for the terminal, 80 columns wide at most."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Group, RenderableType
    from rich.table import Table

    r = recommendation
    table = Table(box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    table.add_column("mechanism", no_wrap=True)
    table.add_column("guarantee", no_wrap=True)
    for heading in ("median", "mean", "÷ midpoint"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in r.rows:
        table.add_row(
            row.name,
            "looks at nothing" if row.name == MIDPOINT else _GUARANTEES[row.guarantee],
            f"{row.median_error:.2g}",
            f"{row.mean_error:.2g}",
            f"{row.worst_ratio:.2f}",
            style="bold" if row.name == r.chosen else None,
        )
    shares = f"{100 * r.shares.low:g} to {100 * r.shares.high:g}%"
    budget = f"ε = {r.epsilon:g}" + (f", δ = {r.delta:g}" if r.delta else "")
    lines: list[RenderableType] = [
        f"{r.metric}, {r.queries} queries, {r.n} people, {shares} disadvantaged, {budget}\n"
        "Error of one answer; ÷ midpoint: at worst, relative to answering that.",
        table,
        f"recommended: {r.chosen}",
    ]
    if r.published_but_for is not None:
        lines.append(f"It publishes A but for 1 person in {r.published_but_for:,.0f}; later batches are then free.")
    if r.midpoint_wins:
        lines.append(
            f"Answering {midpoint(r.metric):g} without looking is as good as every mechanism, and costs nothing.\n"
            "A larger epsilon, or fewer queries, would buy information."
        )
    lines.append(
        "Chosen without a look at the protected attributes: answers clamped to what is\n"
        "possible, for uniform scores without a gap and for decisions with a gap of 0.1."
    )
    return Group(*lines)
