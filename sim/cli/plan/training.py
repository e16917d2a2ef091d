"""The command ``fairwall plan training``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sim.cli.common import console
from sim.cli.plan.columns import Advantaged, Data, Disadvantaged, Negative, Positive, Protected, Target, laid_out

if TYPE_CHECKING:
    from sim.planning.table import GroupTable
    from sim.planning.training import Judged, TrainingPlan


def training(
    data: Data,
    protected: Protected,
    target: Target,
    epsilon: Annotated[float, typer.Option(help="The model's, group statistics included.")],
    max_gap: Annotated[float, typer.Option(help="The most between the groups' rates of decisions.")],
    min_accuracy: Annotated[float, typer.Option(help="The least share of right decisions.")],
    advantaged: Advantaged = None,
    positive: Positive = None,
    disadvantaged: Disadvantaged = None,
    negative: Negative = None,
    delta: Annotated[float, typer.Option(help="0 for pure epsilon.")] = 0.0,
    drop: Annotated[list[str] | None, typer.Option(help="A column that is no feature. May be repeated.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Tell whether a table is large enough to train on.

    Can a model with that gap and accuracy be trained at epsilon? For who holds the protected attribute. No budget is
    spent, and nothing is released; but the answer depends on what is protected: run it where the protected attributes
    are, and keep what it prints there.
    """
    from sim.planning.table import ColumnNames, load, load_rows
    from sim.planning.training import Demands, make

    demands = Demands(epsilon, delta, max_gap, min_accuracy)
    others = (tuple(values or ()) for values in (disadvantaged, negative))
    table = load(ColumnNames(data, protected, target, advantaged, positive, *others))
    rows = load_rows(data, table, drop or ())
    with console(stderr=True).status("training") as status:
        plan = make(rows, demands, lambda what: status.update(f"training: {what}"))
    typer.echo(json.dumps(as_values(plan, table), allow_nan=False) if as_json else as_text(plan, table))


def as_values(plan: TrainingPlan, table: GroupTable) -> dict[str, Any]:
    """Return a plan as one JSON object."""
    demands, (accuracy, gap) = plan.demands, plan.sampling
    return {
        "data": table.name,
        "people": plan.everybody,
        "epsilon": demands.epsilon,
        "delta": demands.delta,
        "max_gap": demands.max_gap,
        "min_accuracy": demands.min_accuracy,
        "holds": plan.holds,
        "undecided": plan.undecided,
        "impossible": plan.impossible,
        "constant_accuracy": plan.constant,
        "constant_is_enough": plan.best is None,
        "best": None if plan.best is None else _values(plan.best),
        "without_privacy": None if plan.free is None else _values(plan.free),
        "binding": plan.binding,
        "most_accurate": plan.most_accurate,
        "least_gap": plan.least_gap,
        "epsilon_that_holds": plan.epsilon,
        "people_that_hold": plan.people,
        "people_extrapolated": None if plan.people is None else plan.people > plan.everybody,
        "sampling": {"accuracy": accuracy, "gap_at_most": gap},
    }


def _values(judged: Judged) -> dict[str, Any]:
    setting, budget = judged.setting, judged.setting.budget
    return {
        "model": _model(judged),
        "strength": setting.strength,
        **({"ridge": setting.ridge} if budget is None else {"kappa": setting.kappa, "statistics": budget.statistics}),
        "accuracy": judged.accuracy.mean,
        "accuracy_standard_error": judged.accuracy.error,
        "accuracy_standard_deviation": judged.accuracy.spread,
        "gap": judged.gap.mean,
        "gap_standard_error": judged.gap.error,
        "gap_standard_deviation": judged.gap.spread,
        "meet_both": judged.both,
        "trainings": judged.accuracy.count,
        "holds": judged.holds,
    }


def as_text(plan: TrainingPlan, table: GroupTable) -> str:
    """Return a plan laid out in 80 columns."""
    demands = plan.demands
    sizes = " and ".join(f"{size:,} {name}" for size, name in zip(plan.groups, table.groups, strict=True))
    spend = f"epsilon {demands.epsilon:,g}" + (f", delta {demands.delta:g}" if demands.delta else " (delta 0)")
    sampling = f"accuracy ± {100 * plan.sampling[0]:.1f} points"
    rows = [
        (
            "asked",
            f"on average, accuracy >= {_percent(demands.min_accuracy)} and gap <= {demands.max_gap:g} on held-out "
            f"people, trained at {spend}, group statistics included",
        ),
        ("answer", _answer(plan)),
    ]
    if plan.best is not None:
        best, sampling = plan.best, f"{sampling}, gap ± {plan.sampling[1]:.3f} at most"
        rows += [
            (
                "single models",
                f"accuracy ± {100 * best.accuracy.spread:.1f} points, gap ± {best.gap.spread:.3f} (standard "
                f"deviations); {100 * best.both:.0f}% of {best.accuracy.count} meet both",
            ),
            ("setting", _setting(best)),
        ]
    if plan.free is not None:
        verdict = "enough" if plan.free.holds else "not enough either"
        means = f"accuracy {100 * plan.free.accuracy.mean:.1f}%, gap {plan.free.gap.mean:.3f}"
        rows.append(("without privacy", f"{means}: {verdict}"))
    if plan.binding is not None:
        rows.append(("binding demand", _binding(plan)))
    constant = f"accuracy {_percent(plan.constant)}, gap 0, at every epsilon (the commoner label is taken as public)"
    rows += [
        ("smallest epsilon", _epsilon(plan)),
        ("smallest n", _people(plan)),
        ("constant answer", constant),
        ("another table", f"of this size, by sampling alone: {sampling}"),
    ]
    return laid_out("private training", f"{plan.everybody:,} people: {sizes}", table, rows)


def _percent(share: float) -> str:
    return f"{100 * share:.4g}%"


def _answer(plan: TrainingPlan) -> str:
    if plan.best is None:
        return "yes, but a constant decision meets both demands: nothing has to be trained"
    if plan.impossible:
        word = "no, and without privacy neither"
    else:
        word = "undecided" if plan.undecided else "yes" if plan.holds else "no"
    best = plan.best
    return (
        f"{word}: accuracy {100 * best.accuracy.mean:.1f} ± {200 * best.accuracy.error:.1f}%, "
        f"gap {best.gap.mean:.3f} ± {2 * best.gap.error:.3f}"
    )


def _model(judged: Judged) -> str:
    setting = judged.setting
    return (("LR", "FairLR"), ("PrivLR", "PFLR*"))[setting.budget is not None][setting.strength > 0]


def _setting(judged: Judged) -> str:
    setting, budget = judged.setting, judged.setting.budget
    fair = f"strength {setting.strength:g}, " if setting.strength else ""
    shares = "" if budget is None or not setting.strength else f"statistics {budget.statistics:g}, "
    return f"{_model(judged)}: {fair}{shares}kappa {setting.kappa:.2g}"


def _binding(plan: TrainingPlan) -> str:
    accuracy, gap = f"accuracy is {100 * plan.most_accurate:.1f}% at most", f"the gap is {plan.least_gap:.3f} at least"
    but = "but for constant decisions"
    return {
        "accuracy": f"accuracy: whatever the gap, {accuracy}",
        "gap": f"gap: whatever the accuracy, {gap}, {but}",
        "each": f"each by itself: {accuracy}; {gap}, {but}",
        "pair": f"the pair: each alone is possible ({accuracy}, {gap}), not both",
    }[str(plan.binding)]


def _epsilon(plan: TrainingPlan) -> str:
    from sim.planning.training import EPSILON_MAX
    from sim.report.notation import number

    if plan.best is None:
        return "any"
    return f"none up to {max(EPSILON_MAX, plan.demands.epsilon):,g}" if plan.epsilon is None else number(plan.epsilon)


def _people(plan: TrainingPlan) -> str:
    from sim.planning.training import TIMES_MAX

    people, there = plan.people, plan.everybody
    if plan.best is None:
        return "any"
    if plan.impossible:
        return "not known: it is not the noise that is in the way"
    if people is None:
        return f"more than {TIMES_MAX * there:,.0f}"
    if people <= plan.people_least:
        return f"{people:,} people or fewer"
    if people <= there:
        return f"{people:,} people with these shares, tried with parts of the table"
    return (
        f"about {people:,} people with these shares, {people - there:,} more ({people / there:.1f} times as many), "
        "extrapolated: noise as for so many, these rows repeated"
    )
