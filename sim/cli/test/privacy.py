"""The command ``fairwall test privacy``."""

from __future__ import annotations

import contextlib
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairwall.plugins import offer
from sim.cli.common import FAILED, Plugins, console

if TYPE_CHECKING:
    from sim.privacy_audit.audit import PrivacyVerdict
    from sim.privacy_audit.greybox import NoiseFault

SAMPLES = 2**18


def privacy(
    mechanism: Annotated[
        str | None, typer.Argument(help="What `--list` names, or FILE.py:FUNCTION.", metavar="MECHANISM")
    ] = None,
    metric: Annotated[str | None, typer.Option(help="The metric that is asked for.")] = None,
    people: Annotated[int | None, typer.Option(help="People in the data set.")] = None,
    models: Annotated[int | None, typer.Option(help="Models in a batch.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="What a batch is asked for at.")] = None,
    delta: Annotated[float | None, typer.Option(help="The same; for mechanisms that have one.")] = None,
    batches: Annotated[int | None, typer.Option(help="How often a session asks for the batch; for mechanisms.")] = None,
    level: Annotated[float, typer.Option(help="Probability of accusing a sound mechanism, all looks together.")] = 1e-5,
    samples: Annotated[int, typer.Option(help="The most sessions on one data set.")] = SAMPLES,
    seed: Annotated[int, typer.Option(help="The same seed gives the same verdict.")] = 0,
    plugin: Plugins = None,
    grey_only: Annotated[bool, typer.Option("--grey-only", help="Draw no sessions: the grey-box test alone.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
    show_list: Annotated[bool, typer.Option("--list", help="List what can be audited, and leave.")] = False,
) -> None:
    """Test whether a mechanism keeps the privacy that it claims. Status 1: it does not."""
    from fairwall.plugins import find
    from sim.privacy_audit.audit import audit
    from sim.privacy_audit.catalogue import PrivacyAuditError, prepare
    from sim.privacy_audit.sampling import FIRST

    offer(plugin or ())
    if show_list:
        _print_list()
        return
    if mechanism is None:
        raise PrivacyAuditError("name a mechanism; `fairwall test privacy --list` names them all")
    if not 0 < level < 1:
        raise PrivacyAuditError("level: must be above 0 and below 1")
    if samples < 2 * FIRST:
        raise PrivacyAuditError(f"samples: must be at least {2 * FIRST}")
    if seed < 0:
        raise PrivacyAuditError("seed: must be at least 0")
    subject, setting = prepare(
        mechanism, metric=metric, n=people, queries=models, epsilon=epsilon, delta=delta, batches=batches
    )
    from rich.text import Text

    with console(stderr=True).status(Text(f"{mechanism}: first draw")) as status:

        def on_look(look: int, lower: float) -> None:
            status.update(Text(f"{mechanism}: look {look}, epsilon is at least {lower:.3g}"))

        others = find("mechanisms", mechanism)
        with others.watched("in its test") if others else contextlib.nullcontext():
            verdict = audit(mechanism, subject, setting, level, samples, seed, on_look, is_sampled=not grey_only)
    if as_json:
        typer.echo(json.dumps(as_record(verdict), allow_nan=False))
    else:
        _print_verdict(verdict)
    if verdict.accused:
        raise typer.Exit(FAILED)


_UNKNOWN = "not known whether "


def as_record(verdict: PrivacyVerdict) -> dict[str, Any]:
    """Return a verdict for JSON: one flat object; an infinite number is the string "inf"."""
    evidence, setting, faults = verdict.evidence, verdict.setting, verdict.faults
    sampled = (
        {}
        if evidence is None
        else {
            "lower_bound": evidence.lower,
            "reach": evidence.reach,
            "level": verdict.level,
            "looks": evidence.looks,
            "sessions": evidence.sessions,
            "pair": evidence.pair,
            "event": evidence.event,
            "hits": evidence.hits,
            "neighbour_hits": evidence.neighbour_hits,
            "trials": evidence.trials,
        }
    )
    record = {
        "mechanism": verdict.subject,
        "metric": setting.metric,
        "n": setting.n,
        "queries": setting.queries,
        "epsilon": setting.epsilon,
        "batches": setting.batches,
        "claimed": verdict.claimed,
        "delta": verdict.delta,
        "exact": verdict.exact,
        "exact_counts": verdict.exact_counts,
        **sampled,
        "faults": None if faults is None else [_as_record(fault) for fault in faults],
        "accused_by_code": verdict.accused_by_code,
        "accused_by_law": verdict.accused_by_law,
        "accused_by_samples": verdict.accused_by_samples,
        "accused": verdict.accused,
    }
    return _finite(record)


def _as_record(fault: NoiseFault) -> dict[str, Any]:
    from sim.privacy_audit.greybox import ABOUT

    file, line = fault.places[0]
    record = {"kind": fault.kind, "about": ABOUT[fault.kind], "file": file, "line": line, "source": fault.source}
    record["proven"] = fault.proven
    return _finite({**record, "pair": fault.pair, "batch": fault.batch, "cost": fault.cost})


def _finite(record: dict[str, Any]) -> dict[str, Any]:
    return {key: "inf" if value == math.inf else value for key, value in record.items()}


def _print_verdict(verdict: PrivacyVerdict) -> None:
    from rich.table import Table
    from rich.text import Text

    from sim.privacy_audit.greybox import ABOUT
    from sim.report.notation import plural

    evidence, setting = verdict.evidence, verdict.setting
    exact = "not known" if verdict.exact is None else f"{verdict.exact:.4g}"
    if verdict.exact and verdict.exact_counts:
        exact += f", worst at N0 = {verdict.exact_counts[0]}, N1 = {verdict.exact_counts[1]}"
    table = Table.grid("what", "found", padding=(0, 2))
    table.add_row(
        "asked",
        f"{setting.metric}, {setting.n} people, {plural(setting.queries, 'model')}, epsilon {setting.epsilon:,g}",
    )
    table.add_row("claimed", f"epsilon {verdict.claimed:g}, delta {verdict.delta:g} a session")
    table.add_row("exact loss", exact)
    if evidence is not None:
        table.add_row("lower bound", f"{evidence.lower:.4g} (such samples reach {evidence.reach:.3g} at most)")
        looks, sessions = plural(evidence.looks, "look"), plural(evidence.sessions, "session")
        table.add_row("", f"level {verdict.level:g} over all looks; {looks}, {sessions}")
        table.add_row("found on", evidence.pair)
        table.add_row("event", evidence.event)
        happened = f"in {evidence.hits:,} of {evidence.trials:,} sessions"
        table.add_row("", f"{happened}; next door in {evidence.neighbour_hits:,}")
    if not verdict.faults:
        table.add_row("grey box", "not looked into: more than one request" if verdict.faults is None else "no fault")
    for fault in verdict.faults or ():
        cost = "" if fault.cost is None else f": epsilon {fault.cost:.4g}"
        table.add_row("grey box", Text(("" if fault.proven else _UNKNOWN) + ABOUT[fault.kind] + cost))
        table.add_row("", Text("in " + ", from ".join(f"{_short(file)}:{line}" for file, line in fault.places)))
        table.add_row("", Text(fault.source))
        table.add_row("", Text(f"on {fault.pair}; batch {fault.batch}"))
    screen = console()
    screen.print(table)
    screen.print(_sentence(verdict))


def _short(file: str) -> str:
    path = Path(file)
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def _sentence(verdict: PrivacyVerdict) -> str:
    if verdict.accused:
        by = [
            name
            for name, accused in (
                ("its law", verdict.accused_by_law),
                ("its code", verdict.accused_by_code),
                ("its samples", verdict.accused_by_samples),
            )
            if accused
        ]
        return f"{verdict.subject}: ACCUSED by {' and '.join(by)}: it does not keep epsilon {verdict.claimed:g}"
    if verdict.faults and verdict.evidence is None:
        return (
            f"{verdict.subject}: not known. The code cannot be followed, and nothing was drawn: leave out --grey-only"
        )
    if verdict.evidence is None:
        return f"{verdict.subject}: not accused. Nothing was drawn: the grey-box test alone has looked"
    if verdict.evidence.reach <= verdict.claimed and verdict.exact is None:
        return f"{verdict.subject}: nothing found, and so few samples could not find anything: raise --samples"
    return f"{verdict.subject}: not accused. Sampling proves no privacy; it failed to disprove it"


def _print_list() -> None:
    from rich.table import Table

    from sim.privacy_audit.catalogue import Kind, names

    kinds: tuple[tuple[Kind, str], ...] = (
        ("mechanism", "Mechanisms"),
        ("broken twin", "Broken on purpose: each must be accused"),
        ("sound sibling", "Their sound siblings: none may be"),
    )
    screen = console()
    for kind, title in kinds:
        table = Table.grid("name", "about", padding=(0, 2))
        for name, about in names(kind).items():
            table.add_row(f"  {name}", about)
        screen.print(title)
        screen.print(table)
