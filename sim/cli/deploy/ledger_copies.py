"""The commands ``fairwall deploy ledger backup`` and ``fairwall deploy ledger restore``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from compliance.deployment.policy.schema import DeploymentSection
    from compliance.ledger.accountant import Loss
    from compliance.ledger.head import AnySeal

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
