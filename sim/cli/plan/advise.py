"""The command ``fairwall plan advise``."""

from __future__ import annotations

import json
import shlex
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sim.cli.common import WIDTH
from sim.cli.plan.columns import Advantaged, Disadvantaged, Negative, Positive

if TYPE_CHECKING:
    from sim.planning.advice import Advice
    from sim.planning.commands import Command
    from sim.planning.situation import Situation


_NAME = 22
"""Most characters of a group's name in the table."""


def advise(
    domain: Annotated[str, typer.Option(help="Where the model is used: lending, medical-research, ...")],
    data: Annotated[str | None, typer.Option(help="A CSV or Parquet file, or a shipped table's name.")] = None,
    protected: Annotated[str | None, typer.Option(help="The column that tells the groups apart.")] = None,
    target: Annotated[str | None, typer.Option(help="The outcome's column.")] = None,
    advantaged: Advantaged = None,
    positive: Positive = None,
    disadvantaged: Disadvantaged = None,
    negative: Negative = None,
    epsilon: Annotated[float | None, typer.Option(help="The budget; or else one from the domain's range.")] = None,
    within: Annotated[float, typer.Option(help="How far a gap may be from the true one.")] = 0.05,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Tell what a domain and a table call for. For compliance.

    Walks a decision tree with the table's own figures. It looks at protected attributes, without noise: run it where
    they are, and keep what it prints there.
    """
    from sim.planning.advice import AdviceRequest
    from sim.planning.advice import advise as find
    from sim.planning.practices import AdviceError, check_numbers, find_domain
    from sim.planning.situation import look
    from sim.planning.table import ColumnNames

    found = find_domain(domain)
    epsilon = found.priority.default if epsilon is None else epsilon
    check_numbers(epsilon, within)
    seen = None
    if data is not None:
        if protected is None or target is None:
            raise AdviceError(f"--{'protected' if protected is None else 'target'}: is missing; --data needs it")
        others = (tuple(values or ()) for values in (disadvantaged, negative))
        seen = look(ColumnNames(data, protected, target, advantaged, positive, *others), epsilon, within)
    elif any(option is not None for option in (protected, target, advantaged, positive, disadvantaged, negative)):
        raise AdviceError("--data: is missing; columns and values are a table's")
    advice = find(AdviceRequest(found, epsilon, within, seen))
    typer.echo(json.dumps(as_values(advice), allow_nan=False) if as_json else as_text(advice))


def as_values(advice: Advice) -> dict[str, Any]:
    """Return advice as one JSON object."""
    from sim.planning.advice import RECONSTRUCTED

    case = advice.case
    return {
        "domain": case.domain.name,
        "named_by_the_paper": case.domain.named,
        "epsilon": case.epsilon,
        "within": case.within,
        "verdict": advice.verdict,
        "tree": RECONSTRUCTED,
        "data": None if case.situation is None else _situation(case.situation),
        "walk": [
            {
                "node": step.node.name,
                "question": step.node.asks,
                "branch": None if step.answer is None else step.answer.branch,
                "answer": None if step.answer is None else step.answer.text,
                "figures": {} if step.answer is None else dict(step.answer.figures),
            }
            for step in advice.steps
        ],
        "recommendations": [
            {
                "name": found.name,
                "title": found.practice.title,
                "why": found.why,
                "trades": found.practice.trades,
                "verdict": found.practice.verdict,
                "checked": found.practice.checked,
                "command": list(found.command),
            }
            for found in advice.recommendations
        ],
    }


def _situation(seen: Situation) -> dict[str, Any]:
    return {
        "name": seen.table.name,
        "people": seen.people,
        "outcome": seen.table.outcome,
        "left_out": list(seen.table.left_out),
        "groups": [
            {
                "group": seen.table.groups[a],
                "people": seen.sizes[a],
                "share": seen.sizes[a] / seen.people,
                "label_rate": seen.base_rates[a],
                "sampling_error": seen.sampling_errors[a],
                "noise_error": seen.noise_errors[a],
            }
            for a in (0, 1)
        ],
        "audit_holds": seen.audit.holds,
        "people_that_hold": seen.audit.people,
        "epsilon_that_holds": seen.audit.epsilon,
    }


def as_text(advice: Advice) -> str:
    """Return advice laid out in 80 columns."""
    return "\n".join(_lines(advice))


def _lines(advice: Advice) -> Iterator[str]:
    from sim.planning.advice import RECONSTRUCTED

    case = advice.case
    yield from _wrapped(f"advice for {case.domain.name}, epsilon {case.epsilon:,g}, gaps within {case.within:g}", "")
    if case.situation is not None:
        yield from _table(case.situation)
    yield ""
    yield from _wrapped(f"answer   {advice.verdict}", " " * 9)
    yield ""
    yield from _wrapped(f"the walk ({RECONSTRUCTED})", "")
    for number, step in enumerate(advice.steps, 1):
        if step.answer is None:
            yield f"{number:2} {step.node.asks} Give --data."
        else:
            yield f"{number:2} {step.node.asks} {step.answer.branch}"
            yield from _wrapped(f"   {step.answer.text}", "   ")
    yield ""
    yield "what to do, in this order"
    for number, found in enumerate(advice.recommendations, 1):
        practice = found.practice
        yield f"{number:2} {found.name}: {practice.title}"
        for name, text in (
            ("why", found.why),
            ("trades", practice.trades),
            ("checked", f"{practice.verdict}: {practice.checked}"),
        ):
            yield from _wrapped(f"   {name:9}{text}", " " * 12)
        yield from _command(found.command)


def _table(seen: Situation) -> Iterator[str]:
    yield from _wrapped(f"{seen.table.name}: {seen.people:,} people; outcome: {seen.table.outcome}", "  ")
    for why in seen.table.left_out:
        yield from _wrapped(why, "  ")
    yield from _wrapped("  read without noise: run this where the attributes are, and keep what it prints there", "  ")
    yield ""
    names = [group if len(group) <= _NAME else f"{group[: _NAME - 1]}…" for group in seen.table.groups]
    wide = max(len("group"), *map(len, names))
    yield f"{'group':{wide}} {'people':>10} {'share':>7} {'outcome':>8} {'sampling error':>15} {'noise error':>12}"
    for a in (0, 1):
        yield (
            f"{names[a]:{wide}} {seen.sizes[a]:10,} {seen.sizes[a] / seen.people:7.1%} "
            f"{seen.base_rates[a]:8.1%} {seen.sampling_errors[a]:15.2g} {seen.noise_errors[a]:12.2g}"
        )


def _command(command: Command) -> Iterator[str]:
    """Yield the lines of a command, as a shell reads it."""
    line = "   try      "
    for word in command:
        quoted = shlex.quote(word)
        if len(line) + len(quoted) > WIDTH - 2:
            yield f"{line}\\"
            line = " " * 12
        line += f"{quoted} "
    yield line.rstrip()


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent, break_on_hyphens=False)
