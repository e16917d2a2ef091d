"""The command ``fairwall plan mechanism``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sim.cli.common import console

if TYPE_CHECKING:
    from rich.console import Group

    from sim.deployment.recommendation import MechanismAdvice

_GUARANTEES = {"pure": "ε", "approximate": "ε, δ", "none": "none"}


def mechanism(
    metric: Annotated[str, typer.Option(help="The metric's key.")],
    people: Annotated[int, typer.Option(help="People whom the metric looks at.")],
    models: Annotated[int, typer.Option(help="Models in the batch.")],
    epsilon: Annotated[float, typer.Option(help="The batch's whole budget.")],
    delta: Annotated[float, typer.Option(help="0 for pure mechanisms only.")] = 0.0,
    share_min: Annotated[float, typer.Option(help="Least share of the disadvantaged group.")] = 0.05,
    share_max: Annotated[float, typer.Option(help="Largest share of it.")] = 0.5,
    reveal_max: Annotated[
        float, typer.Option(help="What balanced accuracy a batch may give away; 1 for no limit.")
    ] = 0.6,
    minimum_group: Annotated[
        int | None, typer.Option(help="How many people each group has at least, by the policy.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Tell which mechanism answers a batch best. No protected attribute is looked at."""
    from sim.deployment.recommendation import recommend as find

    found = find(metric, people, models, epsilon, delta, share_min, share_max, reveal_max, minimum_group)
    if as_json:
        typer.echo(json.dumps(as_values(found), allow_nan=False))
        return
    console().print(as_text(found))


def as_values(recommendation: MechanismAdvice) -> dict[str, Any]:
    """Return a recommendation as one JSON object."""
    return {
        "metric": recommendation.metric,
        "n": recommendation.n,
        "queries": recommendation.queries,
        "epsilon": recommendation.epsilon,
        "delta": recommendation.delta,
        "shares": [recommendation.shares.low, recommendation.shares.high],
        "minimum_group": recommendation.shares.minimum_group,
        "recommended": recommendation.chosen,
        "midpoint_wins": recommendation.midpoint_wins,
        "published_but_for_one_in": recommendation.published_but_for,
        "reveal_max": recommendation.reveal_max,
        "revealed": recommendation.revealed,
        "mechanisms": [
            {
                "mechanism": row.name,
                "guarantee": row.guarantee,
                "median_error": row.median_error,
                "mean_error": row.mean_error,
                "worst_ratio_to_midpoint": row.worst_ratio,
                "revealed": told,
            }
            for row, told in zip(recommendation.rows, recommendation.told, strict=True)
        ],
    }


def as_text(recommendation: MechanismAdvice) -> Group:
    """Return a recommendation as a table for the terminal, 80 columns wide at most."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Group, RenderableType
    from rich.table import Table

    from fairwall.laws.choice.prediction import MIDPOINT, midpoint
    from fairwall.laws.privacy.exposure import in_words

    r = recommendation
    table = Table(box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    table.add_column("mechanism", no_wrap=True)
    table.add_column("guarantee", no_wrap=True)
    for heading in ("median", "mean", "÷ midpoint", "reveals"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row, told in zip(r.rows, r.told, strict=True):
        table.add_row(
            row.name,
            "no look" if row.name == MIDPOINT else _GUARANTEES[row.guarantee],
            f"{row.median_error:.2g}",
            f"{row.mean_error:.2g}",
            f"{row.worst_ratio:.2f}",
            f"{100 * told:.1f}%",
            style="bold" if row.name == r.chosen else None,
        )
    shares = f"{100 * r.shares.low:g} to {100 * r.shares.high:g}%"
    budget = f"ε = {r.epsilon:,g}" + (f", δ = {r.delta:g}" if r.delta else "")
    lines: list[RenderableType] = [
        f"{r.metric}, {r.queries} models, {r.n} people, {shares} disadvantaged, {budget}\n"
        "Error of one answer; ÷ midpoint: at worst, relative to answering that;\n"
        "reveals: how many are found out at most, both groups counted equally.",
        table,
        f"recommended: {r.chosen}",
    ]
    lines.append(in_words(r.revealed, r.epsilon, r.delta, r.shares.allowed(r.n)[0]))
    if r.revealed > r.reveal_max:
        lines.append(f"No mechanism stays within {100 * r.reveal_max:g}%: this one gives away least.")
    if r.published_but_for is not None:
        lines.append(f"It publishes A but for 1 person in {r.published_but_for:,.0f}; later batches are then free.")
    if r.midpoint_wins:
        lines.append(
            f"Answering {midpoint(r.metric):g} without looking is as good as every mechanism, and costs nothing.\n"
            "A larger epsilon, or fewer models, would buy information."
        )
    lines.append(
        "Chosen without a look at the protected attributes: answers clamped to what is\n"
        "possible, for uniform scores without a gap and for decisions with a gap of 0.1."
    )
    return Group(*lines)
