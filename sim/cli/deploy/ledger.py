"""The commands ``fairwall deploy ledger ...``: a ledger's charges, its copies, and the signed page of it."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from sim.cli.common import FAILED, WIDTH, console

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from compliance.deployment.policy.schema import DeploymentSection
    from compliance.ledger.accountant import Loss
    from compliance.ledger.entries import Admission, LedgerEntry, Record
    from compliance.ledger.head import AnySeal
    from compliance.ledger.place import Inspection
    from sim.attestation.envelope import Signer

    _Record = TypeVar("_Record", Admission, LedgerEntry)

Policy = Annotated[Path, typer.Option("--policy", help="The policy that the service is started with.", metavar="FILE")]


def backup(
    folder: Annotated[Path, typer.Argument(help="Gets the copy.", metavar="FOLDER")],
    policy: Policy,
) -> None:
    """Copy the ledger as it is now, and check the copy. The service may be running."""
    from compliance.ledger.copies import back_up

    place = place_of(policy)
    for copy, end in back_up(place.ledger, folder, seal_of(place)):
        typer.echo(f"copy: {copy}\n{end.sequence} records, up to\n{end.chain.hex()}")


def restore(
    copy: Annotated[Path, typer.Argument(help="A copy of the ledger.", metavar="COPY")],
    policy: Policy,
    lost: Annotated[
        list[str] | None,
        typer.Option(
            help="Where the copy is not the newest: what this data set was charged after it, at most; inf if nobody "
            "knows. Give it once for each data set.",
            metavar="DATA=EPSILON[:DELTA]",
        ),
    ] = None,
) -> None:
    """Put a copy in the place of a ledger that was lost. The service must not be running."""
    from compliance.ledger.copies import restore as put_back
    from compliance.ledger.place import shown

    losses = dict(map(_loss, lost or ()))
    place = place_of(policy)
    end = put_back(copy, place.ledger, seal_of(place), losses)
    typer.echo(f"ledger: {shown(place.ledger)}\n{end.sequence} records, up to\n{end.chain.hex()}")


def place_of(policy: Path) -> DeploymentSection:
    """Read the section of a policy that says where a deployment keeps its ledger and keys."""
    from compliance.deployment.policy.reading import read

    return read(policy).deployment


def seal_of(place: DeploymentSection) -> AnySeal:
    """Return the seal of a deployment's ledger; SealError without its key, as no forged record would show then."""
    from compliance.ledger.head import SealError, load_key
    from compliance.ledger.place import open_seal

    key = place.credentials / "seal.key"
    if not key.exists():
        raise SealError(f"{key}: is not there: bring back the key that the ledger was written with")
    return open_seal(place.seal, load_key(key))


def _loss(text: str) -> tuple[str, Loss]:
    from compliance.ledger.accountant import Loss

    name, _, amount = text.rpartition("=")
    epsilon, _, delta = amount.partition(":")
    try:
        return name, Loss(float(epsilon), float(delta or 0))
    except ValueError:
        raise typer.BadParameter(f"--lost {text}: must be DATA=EPSILON or DATA=EPSILON:DELTA") from None


def report(
    policy: Policy,
    out: Annotated[
        Path, typer.Option(help="The page; its statement goes beside it, and a table of rates.", metavar="PAGE.html")
    ],
    log: Annotated[
        list[Path] | None, typer.Option(help="Count refused calls in this log of the service, too.", metavar="FILE")
    ] = None,
    dataset: Annotated[str | None, typer.Option(help="Tell of this data set alone.", metavar="NAME")] = None,
    developer: Annotated[str | None, typer.Option(help="Tell of this developer alone.", metavar="NAME")] = None,
    key: Annotated[
        Path | None,
        typer.Option(help="Sign with this Ed25519 key instead of the certificate's.", metavar="FILE"),
    ] = None,
) -> None:
    """Write a signed page of what was asked, answered and charged. The service may be running."""
    from datetime import UTC, datetime

    from compliance.deployment.policy.reading import read
    from compliance.ledger.copies import sealed
    from sim.attestation import envelope, law, rates, refusals, statement
    from sim.attestation.check import rates_beside, statement_of
    from sim.attestation.page import render

    beside = statement_of(out)
    policies = read(policy)
    place = policies.deployment
    found = sealed(place.ledger, seal_of(place))
    signer = _signer(place, key)
    account = statement.account_of(
        found,
        place.name,
        datetime.now(UTC),
        signer.described,
        dataset=dataset,
        developer=developer,
        refusals=refusals.count(log, dataset, f"developer/{developer}" if developer else None) if log else None,
        law=law.stated(policies, dataset),
    )
    table = {rates_beside(out): rates.table_of(account)} if any("rates" in one for one in account["byGroup"]) else {}
    files = {out: render(account), **table}
    stated = statement.statement_of(account, {path.name: file for path, file in files.items()})
    for path, file in {**files, beside: envelope.sign(stated, signer)}.items():
        _replace(path, file)
    typer.echo(f"page: {out}\nstatement: {beside}" + "".join(f"\nrates by group: {path}" for path in table))


def check(
    file: Annotated[Path, typer.Argument(help="A page, or its statement; the other is beside it.", metavar="FILE")],
    authority: Annotated[
        Path | None, typer.Option(help="The deployment's authority.pem, of your own credentials.", metavar="FILE")
    ] = None,
    public_key: Annotated[
        Path | None, typer.Option(help="Instead: compliance's public key, where it signs with one.", metavar="FILE")
    ] = None,
    predictions: Annotated[
        Path | None, typer.Option(help="Say which batches were about these predictions (.npy).", metavar="FILE")
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="With --predictions: what was asked for, if less was charged.")
    ] = None,
    threshold: Annotated[float | None, typer.Option(help="With --predictions: the threshold that was asked.")] = None,
    rows: Annotated[
        str, typer.Option(help="With --predictions, in the order of ids: the rows' digest, as sent.", metavar="HEX")
    ] = "",
) -> None:
    """Check offline that compliance signed a page. Its table of rates is checked, too."""
    from sim.attestation.check import check as checked
    from sim.attestation.envelope import EnvelopeError

    if (authority is None) == (public_key is None):
        raise typer.BadParameter("give --authority or --public-key, and not both")
    try:
        found = checked(file, authority=authority, key=public_key)
    except EnvelopeError as error:
        typer.echo(f"REFUSED: {file.name}: {error}")
        raise typer.Exit(FAILED) from None
    account = found.account
    typer.echo(f"signed by compliance of {account['deployment']} at {account['signedAt'][:19]}Z, unchanged since")
    typer.echo(f"ledger: {account['ledger']['records']} records, up to\n{account['ledger']['head']}")
    for note in found.notes:
        typer.echo(fill(f"note: {note}", WIDTH, subsequent_indent="      "))
    if predictions is not None:
        try:
            digest = bytes.fromhex(rows)
        except ValueError:
            raise typer.BadParameter("is not hexadecimal", param_hint="--rows") from None
        _say_where(predictions, account, epsilon, threshold, digest)


def _signer(place: DeploymentSection, key: Path | None) -> Signer:
    from fairwall.rpc import identity
    from sim.attestation import envelope
    from sim.verify.signature import private_key

    if key is not None:
        return envelope.Signer(private_key(key))
    credentials = identity.load(place.credentials)
    if (credentials.run, credentials.party) != (place.name, "compliance"):
        raise identity.CredentialsError(
            f"{place.credentials}: the certificate is for {credentials.party} of {credentials.run}, "
            f"not for compliance of {place.name}"
        )
    return envelope.signer_of(credentials)


def _say_where(
    path: Path, account: dict[str, Any], epsilon: float | None, threshold: float | None, rows_digest: bytes
) -> None:
    from sim.attestation.check import asked_about, models_in, read

    predictions = read(path)
    found = asked_about(predictions, account["audits"], epsilon=epsilon, threshold=threshold, rows_digest=rows_digest)
    for audit in found:
        typer.echo(f"{path.name}: asked about in record {audit['record']}, {audit['subject']}, {audit['metric']}")
    if found:
        return
    models = models_in(predictions)
    records = [str(audit["record"]) for audit in account["audits"] if len(audit["models"]) == models]
    asked = (
        ("a threshold", "--threshold", threshold is not None),
        ("rows told by ids", "--rows", bool(rows_digest)),
        ("another epsilon than was charged", "--epsilon", epsilon is not None),
    )
    given = ", ".join(
        f"with {what} ({option})" if there else f"without {what} ({option})" for what, option, there in asked
    )
    so_many = f"as many models are in {'records' if len(records) > 1 else 'record'} {', '.join(records)}"
    why = f", asked {given}; {so_many}" if records else f": none has so many models ({models})"
    typer.echo(fill(f"{path.name}: NO batch on this page is about these predictions{why}", WIDTH))
    raise typer.Exit(FAILED)


def _replace(path: Path, text: bytes) -> None:
    aside = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        aside.write_bytes(text)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


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
