"""The commands ``fairwall deploy ledger report`` and ``fairwall deploy ledger check``: the signed page of a ledger."""

from __future__ import annotations

import os
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sim.cli.deploy.ledger_copies import Policy, seal_of
from sim.cli.status import FAILED, WIDTH

if TYPE_CHECKING:
    from compliance.deployment.policy.schema import DeploymentSection
    from sim.attestation.envelope import Signer


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
    from sim.attestation import subjects

    predictions = subjects.read(path)
    found = subjects.asked_about(
        predictions, account["audits"], epsilon=epsilon, threshold=threshold, rows_digest=rows_digest
    )
    for audit in found:
        typer.echo(f"{path.name}: asked about in record {audit['record']}, {audit['subject']}, {audit['metric']}")
    if found:
        return
    models = subjects.models_in(predictions)
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
