"""The commands ``fairwall deploy ledger ...``: the charges of a compliance service, for people and for programs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from sim.cli.deploy.ledger_copies import backup, restore
from sim.cli.deploy.ledger_page import check, report
from sim.cli.found import console
from sim.cli.status import FAILED, WIDTH

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from compliance.ledger.entries import Admission, LedgerEntry, Record
    from compliance.ledger.place import Inspection

    _Record = TypeVar("_Record", Admission, LedgerEntry)

_LAST = 10

File = Annotated[str, typer.Argument(help="A service's ledger: a file, or a database's URL.", metavar="LEDGER")]

app = typer.Typer(
    no_args_is_help=True,
    help="Read, sign, copy and restore a compliance service's ledger. A running service is not disturbed.",
)


@app.command()
def show(file: File) -> None:
    """Print budgets, what is spent of them, and the last charges."""
    from compliance.ledger.place import inspect

    chains = inspect(_place(file))
    screen = console(WIDTH)
    screen.print(_budgets(chains))
    screen.print()
    screen.print(_charges(chains))
    _print_policies(screen, chains)
    typer.echo()
    for found in chains:
        name, count = f" of {_printable(found.chain)}" if found.chain else "", len(found.records)
        if found.fault:
            typer.echo(f"The chain{name} is BROKEN; shown are the {count} records before.\n{found.fault}")
        else:
            end = found.books.head.chain.hex()
            typer.echo(f"The chain{name} is whole: {count} record{'s' * (count != 1)}, up to\n{end}")
    if any(found.fault for found in chains):
        raise typer.Exit(FAILED)


@app.command()
def export(file: File) -> None:
    """Print each record as one line of JSON. The last line of a chain is its end."""
    from compliance.ledger.place import inspect

    chains = inspect(_place(file))
    for found in chains:
        head = found.books.head
        end = {"record": "end", "sequence": head.sequence, "chain": head.chain.hex(), "whole": not found.fault}
        for line in (*map(_line, found.records), end | ({"fault": found.fault} if found.fault else {})):
            typer.echo(json.dumps(line, allow_nan=False))
    if any(found.fault for found in chains):
        raise typer.Exit(FAILED)


app.command()(report)
app.command()(check)
app.command()(backup)
app.command()(restore)


def _place(file: str) -> Path | str:
    from compliance.ledger.place import is_database

    return file if is_database(file) else Path(file)


def _table(title: str, names: Sequence[str], *, of_records: bool = False) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, title=title, title_justify="left", expand=True, pad_edge=False)
    if of_records:
        table.add_column("no.", justify="right", no_wrap=True)
        table.add_column("time, UTC", no_wrap=True)
    for name in names:
        table.add_column(name, overflow="fold")
    return table


def _budgets(chains: Sequence[Inspection]) -> Table:
    table = _table("Privacy budgets, in epsilon", ("data set", "developer", "neighbours", "rule"))
    for heading in ("budget", "delta", "spent", "left"):
        table.add_column(heading, justify="right", no_wrap=True)
    for books, (dataset, developer) in ((each.books, account) for each in chains for account in each.books.accounts):
        standing = books.standing(dataset, developer)
        budget = standing.budget
        if budget is not None:
            units = (books.neighbours[dataset], budget.rule)
            figures = (budget.epsilon, budget.delta, standing.spent, standing.remaining)
            table.add_row(_printable(dataset), _printable(developer) or "(all)", *units, *map(_figure, figures))
    return table


def _charges(chains: Sequence[Inspection]) -> Table:
    from compliance.answers.audits import column_of
    from compliance.ledger.entries import LedgerEntry

    last = _last(chains, LedgerEntry)
    table = _table("Last charges", ("data set", "developer", "metric", "mechanism"), of_records=True)
    table.add_column("epsilon", justify="right", no_wrap=True)
    for entry in last:
        asked = entry.request
        by = column_of(entry)
        metric = f"{asked.metric} by {by}" if by else asked.metric
        names = map(_printable, (asked.dataset, asked.developer, metric, asked.mechanism))
        table.add_row(str(entry.sequence), f"{_moment(entry.time):%m-%d %H:%M:%S}", *names, _figure(asked.loss.epsilon))
    return table


def _last(chains: Sequence[Inspection], kind: type[_Record]) -> list[_Record]:
    """Return the last records of a kind; for one chain in their order, for several by their times."""
    of_kind = [record for found in chains for record in found.records if isinstance(record, kind)]
    return (sorted(of_kind, key=lambda record: record.time) if len(chains) > 1 else of_kind)[-_LAST:]


def _print_policies(screen: Console, chains: Sequence[Inspection]) -> None:
    from compliance.ledger.entries import Admission

    last = _last(chains, Admission)
    if not last:
        return
    table = _table("Last policies", ("policy", "data set", "metrics", "developers"), of_records=True)
    for record in last:
        for place, each in enumerate(record.served):
            first = ("", "", "")
            if not place:
                first = (str(record.sequence), f"{_moment(record.time):%m-%d %H:%M:%S}", record.policy.hex()[:12])
            named = (each.dataset, ", ".join(each.metrics), ", ".join(each.developers))
            table.add_row(*first, *map(_printable, named))
    screen.print()
    screen.print(table)


def _line(record: Record) -> dict[str, Any]:
    """Return a record as a flat object. The ledger has no exact answer: this is at most what the developer got."""
    from compliance.ledger.entries import Admission, BudgetRecord
    from sim.scenarios.scenario import plain

    frame = {"sequence": record.sequence, "time": _moment(record.time).isoformat(), "chain": record.chain.hex()}
    if isinstance(record, BudgetRecord):
        budget = record.budget
        return {
            "record": "budget",
            **frame,
            "dataset": record.dataset,
            "developer": record.developer or None,
            "neighbours": record.neighbours,
            "rule": budget.rule,
            "epsilon": plain(budget.epsilon),
            "delta": budget.delta,
        }
    if isinstance(record, Admission):
        served = [dataclasses.asdict(each) for each in record.served]
        return {"record": "policy", **frame, "policy": record.policy.hex(), "served": served}
    from compliance.answers.audits import column_of

    asked = record.request
    loss = asked.loss
    return {
        "record": "charge",
        **frame,
        "dataset": asked.dataset,
        "developer": asked.developer,
        "request_id": asked.request_id,
        "digest": asked.digest.hex(),
        "metric": asked.metric,
        "by": column_of(record) or None,
        "mechanism": asked.mechanism,
        "neighbours": asked.neighbours,
        "law": loss.law,
        "epsilon": plain(loss.epsilon),
        "delta": loss.delta,
        "multiplier": loss.multiplier or None,
        "remaining": plain(record.remaining),
        "answer": record.reply.answer.hex(),
    }


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _figure(value: float) -> str:
    return f"{value:,.10g}" if abs(value) >= 1000 else f"{value:.4g}"


def _printable(name: str) -> str:
    """Return a name without control characters, which a terminal would obey: others chose it."""
    return "".join(letter if letter.isprintable() else "?" for letter in name)
