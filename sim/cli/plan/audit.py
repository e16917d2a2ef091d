"""The command ``fairwall plan audit``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sim.cli.common import console
from sim.cli.plan.columns import Advantaged, Data, Disadvantaged, Negative, Positive, Protected, Target, laid_out

if TYPE_CHECKING:
    from sim.planning.answer_laws import PlannedBatch
    from sim.planning.audit import AuditPlan
    from sim.planning.table import GroupTable


def audit(
    data: Data,
    protected: Protected,
    target: Target,
    epsilon: Annotated[float | None, typer.Option(help="The whole batch's.")] = None,
    within: Annotated[float | None, typer.Option(help="How far a released gap may be from the true one.")] = None,
    advantaged: Advantaged = None,
    positive: Positive = None,
    disadvantaged: Disadvantaged = None,
    negative: Negative = None,
    delta: Annotated[float, typer.Option(help="0 for pure epsilon.")] = 0.0,
    metric: Annotated[str, typer.Option(help="The metric's key.")] = "sp",
    models: Annotated[int, typer.Option(help="Models in the batch.")] = 1,
    mechanism: Annotated[str, typer.Option(help="What releases the gaps.")] = "recommended",
    bounding: Annotated[str, typer.Option(help="none, clamp, truncate or boundary-inflate.")] = "clamp",
    reveal_max: Annotated[float, typer.Option(help="The policy's audit.reveal_max.")] = 0.6,
    budget: Annotated[float | None, typer.Option(help="Epsilon in all, for several batches.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    html: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False, metavar="FILE", help="Write a page to choose epsilon by; needs no --epsilon, no --within."
        ),
    ] = None,
) -> None:
    """Tell whether a table is large enough to audit.

    Is a released gap within F of the true one in 95 of 100 cases, whatever the true gap is? For compliance. No budget
    is spent, and nothing is released; but the answer depends on what is protected: run it where the protected
    attributes are, and keep what it prints there; the page that --html writes, too.
    """
    from sim.planning import PlanError

    if html is not None:
        _check_page(html, alone=not as_json and budget is None)
    elif epsilon is None or within is None:
        missing = "--epsilon" if epsilon is None else "--within"
        raise PlanError(f"Missing option '{missing}': without --html it must be given")
    from fairwall.laws.metrics.metric import find_metric
    from sim.planning.answer_laws import PlannedBatch
    from sim.planning.audit import EPSILON, make
    from sim.planning.table import ColumnNames, load

    try:
        metric = find_metric(metric).name
    except ValueError as error:
        raise PlanError(f"--metric: {error}") from None
    others = (tuple(values or ()) for values in (disadvantaged, negative))
    table = load(ColumnNames(data, protected, target, advantaged, positive, *others))
    first = EPSILON if epsilon is None else epsilon
    batch = PlannedBatch(metric, table.counts, models, first, delta, mechanism, bounding, reveal_max)  # type: ignore[arg-type]
    if html is not None:
        _write(html, batch, within, table)
        return
    assert within is not None, "a page alone does without"
    found = make(batch, within, budget)
    typer.echo(json.dumps(as_values(found, table), allow_nan=False) if as_json else as_text(found, table))


def _check_page(html: Path, *, alone: bool) -> None:
    from sim.planning import PlanError

    if not alone:
        raise PlanError("--html: a page, about one batch: leave out --json and --budget")
    if not html.parent.is_dir():
        raise PlanError(f"--html: there is no folder {html.parent}")


def _write(html: Path, batch: PlannedBatch, within: float | None, table: GroupTable) -> None:

    from sim.cli.plan.choice_page import render
    from sim.planning.audit import choices

    with console(stderr=True).status("choosing") as status:
        found = choices(batch, within, lambda epsilon: status.update(f"choosing: epsilon {epsilon:,g}"))
        html.write_text(render(found, table.name), encoding="utf-8")
    typer.echo(f"page: {html}")


def as_values(plan: AuditPlan, table: GroupTable) -> dict[str, Any]:
    """Return a plan as one JSON object."""
    worst, batch, binding = plan.worst, plan.batch, plan.binding
    return {
        "data": table.name,
        "people": plan.everybody,
        "metric": batch.metric,
        "models": batch.queries,
        "mechanism": batch.mechanism,
        "bounding": batch.bounding,
        "epsilon": batch.epsilon,
        "delta": batch.delta,
        "within": plan.within,
        "holds": plan.holds,
        "undecided": plan.undecided,
        "probability": worst.probability,
        "probability_standard_error": worst.error,
        "least_favourable": {
            "gap": worst.gap,
            "ones": None if worst.ones is None else [list(pair) for pair in worst.ones],
            "others_alike": worst.case == 0,
        },
        "searched_with": plan.searched,
        "within_that_holds": plan.reach,
        "epsilon_that_holds": plan.epsilon,
        "people_that_hold": plan.people,
        "binding_group": None
        if binding is None
        else {"group": _group(plan, table), "people": binding[2], "of": binding[3]},
        "person_risk": plan.person_risk[0],
        "person_risk_most": plan.person_risk[1],
        "batches": plan.batches,
        "batches_at_epsilon_that_holds": plan.batches_at_least,
    }


def as_text(plan: AuditPlan, table: GroupTable) -> str:
    """Return a plan laid out in 80 columns."""
    batch, worst, people = plan.batch, plan.worst, plan.everybody
    sizes = " and ".join(
        f"{sum(batch.counts.groups(label)[a] for label in (0, 1)):,} {table.groups[a]}" for a in (0, 1)
    )
    spend = f"epsilon {batch.epsilon:,g}" + (f", delta {batch.delta:g}" if batch.delta else "")
    about = "1 model" if batch.queries == 1 else f"{batch.queries:,} models"
    kept = "not bounded" if batch.bounding == "none" else f"{batch.bounding} to the metric's range"
    word = "undecided" if plan.undecided else "yes" if plan.holds else "no"
    error = f" ± {worst.error:.4f}, drawn" if worst.error else ""
    rows = [
        ("release", f"{batch.mechanism}, {kept}, {spend}"),
        ("asked", f"P(|released gap - true gap| <= {plan.within:g}) >= 95%, for each answer"),
        ("answer", f"{word}: {_percent(worst.probability)}{error}, whatever the true gap"),
        ("worst for", _worst(plan)),
        *([("with counts", "as they are, not shrunk:")] if plan.searched != batch.mechanism else []),
        ("holds within", _number(plan.reach) if plan.reach else "nothing short of the metric's whole range"),
        ("smallest epsilon", _number(plan.epsilon) if plan.epsilon else "none up to 10,000"),
        ("smallest n", _people(plan.people, people, plan.binding is not None)),
        ("binding group", _binding(plan, table)),
    ]
    told, most = plan.person_risk
    named = "" if told is None else f"{_share(told)} named with 0.1% of the others; "
    rows.append(("one aimed at", f"{named}by anybody {_share(most)} at most"))
    if plan.batches is not None:
        least = "" if plan.batches_at_least is None else f"; {plan.batches_at_least:,} at the smallest epsilon"
        rows.append(("budget holds", f"{_batches(plan)}{least}"))
    return laid_out(f"{batch.metric} of {about}", f"{people:,} people: {sizes}", table, rows)


def _percent(probability: float) -> str:
    return f"{100 * probability:.2f}%" if probability < 0.9999 else "more than 99.99%"


def _share(share: float) -> str:
    return f"{100 * share:.3g}%"


def _number(x: float) -> str:
    return f"{x:.3g}" if x < 1000 else f"{x:,.0f}"


def _worst(plan: AuditPlan) -> str:
    worst = plan.worst
    if worst.ones is None:
        return f"a true gap of {worst.gap:.2g}, and most others"
    rates = "; ".join(f"{100 * r0:.0f}% and {100 * r1:.0f}%" for r0, r1 in worst.rates)
    others = "" if worst.case == 0 else ", the other models showing none"
    return f"a true gap of {worst.gap:.2g} (the groups' rates: {rates}){others}"


def _people(needed: int | None, there: int, falls: bool) -> str:
    if needed is None:
        return "more than 10,000,000" if falls else "none: this noise does not fall with n"
    if needed > there:
        return f"{needed:,} people with these shares, {needed - there:,} more ({needed / there:.1f} times as many)"
    return f"{needed:,} people with these shares"


def _group(plan: AuditPlan, table: GroupTable) -> str:
    assert plan.binding is not None
    label, a, _, _ = plan.binding
    return table.groups[a] + ("" if label is None else f" with{'' if label else 'out'} {table.outcome}")


def _binding(plan: AuditPlan, table: GroupTable) -> str:
    if plan.binding is None:
        return "none: this noise does not depend on the groups' sizes"
    _, _, size, of = plan.binding
    return f"{_group(plan, table)}: {size:,} of {of:,}"


def _batches(plan: AuditPlan) -> str:
    assert plan.batches is not None
    if plan.batch.mechanism == "randomized-response":
        return "all later batches: the first buys noisy attributes, the others are free"
    return f"{plan.batches:,} such batch" + ("" if plan.batches == 1 else "es")
