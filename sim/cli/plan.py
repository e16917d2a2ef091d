"""The command ``fairwall plan``."""

from __future__ import annotations

import json
from typing import Annotated

import typer


def plan(
    data: Annotated[str, typer.Option(help="A CSV or Parquet file, or a shipped table's name.")],
    protected: Annotated[str, typer.Option(help="The column that tells the groups apart.")],
    target: Annotated[str, typer.Option(help="The outcome's column.")],
    epsilon: Annotated[float, typer.Option(help="The whole batch's, or the model's.")],
    within: Annotated[float | None, typer.Option(help="How far a released gap may be from the true one.")] = None,
    max_gap: Annotated[float | None, typer.Option(help="The most between the groups' rates of decisions.")] = None,
    min_accuracy: Annotated[float | None, typer.Option(help="The least share of right decisions.")] = None,
    advantaged: Annotated[str | None, typer.Option(help="Its value; may be left out if there are two.")] = None,
    positive: Annotated[str | None, typer.Option(help="The favourable outcome; the later one of two.")] = None,
    delta: Annotated[float, typer.Option(help="0 for pure epsilon.")] = 0.0,
    metric: Annotated[str, typer.Option(help="With --within: the metric's key.")] = "sp",
    models: Annotated[int, typer.Option(help="With --within: models in the batch.")] = 1,
    mechanism: Annotated[str, typer.Option(help="With --within: what releases the gaps.")] = "recommended",
    bounding: Annotated[str, typer.Option(help="With --within: none, clamp, truncate or boundary-inflate.")] = "clamp",
    reveal_max: Annotated[float, typer.Option(help="With --within: the policy's audit.reveal_max.")] = 0.6,
    budget: Annotated[float | None, typer.Option(help="With --within: epsilon in all, for several batches.")] = None,
    drop: Annotated[list[str] | None, typer.Option(help="With --max-gap: a column that is no feature.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Tell whether a table is large enough to audit or train on.

    Audit (--within F), for compliance: is a released gap within F of the true one in 95 of 100 cases, whatever the true
    gap is? Training (--max-gap F --min-accuracy U), for who holds the protected attribute: can a model with that gap
    and accuracy be trained at epsilon? No budget is spent, and nothing is released; but the answer depends on what is
    protected: run it where the protected attributes are, and keep what it prints there.
    """
    from sim.planning.errors import PlanError
    from sim.planning.table import load, load_rows

    if (within is None) == (max_gap is None) or (max_gap is None) != (min_accuracy is None):
        raise PlanError("ask one question: --within F about an audit, or --max-gap F --min-accuracy U about training")
    if max_gap is not None and min_accuracy is not None:
        for option, left in (
            ("--metric", metric == "sp"),
            ("--models", models == 1),
            ("--mechanism", mechanism == "recommended"),
            ("--bounding", bounding == "clamp"),
            ("--reveal-max", reveal_max == 0.6),
            ("--budget", budget is None),
        ):
            if not left:
                raise PlanError(f"{option}: belongs to --within, the question about an audit")
        from sim.cli.plan_training import answer
        from sim.planning.training import Demands

        demands = Demands(epsilon, delta, max_gap, min_accuracy)
        table = load(data, protected, advantaged, target, positive)
        answer(table, load_rows(data, table, drop or ()), demands, as_json=as_json)
        return
    from fairwall.laws.metric import METRICS
    from sim.cli.plan_audit import as_text, as_values
    from sim.planning.audit import make
    from sim.planning.batch import Batch

    if drop:
        raise PlanError("--drop: belongs to --max-gap, the question about training")
    if metric not in METRICS:
        raise PlanError(f"--metric: unknown metric {metric!r}, choose one of: {', '.join(METRICS)}")
    table = load(data, protected, advantaged, target, positive)
    batch = Batch(metric, table.counts, models, epsilon, delta, mechanism, bounding, reveal_max)  # type: ignore[arg-type]
    assert within is not None
    found = make(batch, within, budget)
    typer.echo(json.dumps(as_values(found, table), allow_nan=False) if as_json else as_text(found, table))
