"""The commands ``fairwall deploy certificates ...``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from sim.play.keys import RunAuthority

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Issue, renew and revoke a deployment's certificates.",
)

Folder = Annotated[Path, typer.Option("--dir", help="The folder with a folder for each.", metavar="DIR")]
Certificate = Annotated[
    Path | None,
    typer.Option("--authority", help="The authority's certificate; by default in DIR/authority.", metavar="FILE"),
]
Key = Annotated[
    Path | None, typer.Option("--authority-key", help="Its key; by default in DIR/authority.", metavar="FILE")
]
Days = Annotated[int, typer.Option(min=1, max=3650, help="How long a certificate holds.")]
Policy = Annotated[
    Path | None, typer.Option(help="The policy, whose service is told if it is running.", metavar="FILE")
]
Name = Annotated[str, typer.Argument(help="A developer's name.", metavar="NAME")]

_CERTIFICATES = Path("certificates")


@app.command()
def new(
    deployment: Annotated[str, typer.Option(help="The deployment's name, as in its policy.")],
    developer: Annotated[list[str], typer.Option(help="A developer's name. May be repeated.")],
    folder: Folder = _CERTIFICATES,
    days: Days = 365,
    authority: Certificate = None,
    authority_key: Key = None,
) -> None:
    """Issue a deployment's first certificates. By a new authority, or by one of your own."""
    from sim.deployment.certificates import write

    own = None if authority is authority_key is None else _authority(folder, authority, authority_key)
    for path in write(folder, deployment, developer, days, own):
        typer.echo(path)


@app.command()
def add(
    name: Name,
    policy: Annotated[
        Path | None,
        typer.Option(help="Take the developer into this policy, and tell its service.", metavar="FILE"),
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="What the developer may spend; with --policy.")] = None,
    dataset: Annotated[str | None, typer.Option(help="The data set, where the policy has several.")] = None,
    delta: Annotated[float | None, typer.Option(help="Its delta; left out: 0.")] = None,
    release: Annotated[float | None, typer.Option(help="What it may spend on releases; left out: 0.")] = None,
    folder: Folder = _CERTIFICATES,
    days: Days = 365,
    authority: Certificate = None,
    authority_key: Key = None,
) -> None:
    """Issue one more developer's certificate. With --policy, admit the developer to a service that keeps running."""
    from sim.deployment import certificates, service
    from sim.deployment.certificates import replace

    given = {"epsilon": epsilon, "delta": delta, "release": release}
    terms = {key: value for key, value in given.items() if value is not None}
    if (policy is None) != (epsilon is None) or (policy is None and (terms or dataset)):
        raise certificates.CertificatesError("--policy, --epsilon: a developer comes into a policy with an epsilon")
    own = _authority(folder, authority, authority_key)
    text, is_known = ("", False) if policy is None else service.with_developer(policy, name, terms, dataset)
    if not is_known:
        typer.echo(certificates.add(folder, name, days, own))
    if policy is not None:
        replace(policy, text)
        typer.echo(service.tell(policy))


@app.command()
def renew(
    name: Annotated[str, typer.Argument(help="A developer's name, or compliance.", metavar="NAME")],
    folder: Folder = _CERTIFICATES,
    days: Days = 365,
    revoke_old: Annotated[
        bool, typer.Option("--revoke-old", help="Revoke the developer's older certificates.")
    ] = False,
    policy: Policy = None,
    authority: Certificate = None,
    authority_key: Key = None,
) -> None:
    """Issue a new certificate to a developer or to compliance. A service shows its new one once it is told."""
    from sim.deployment import certificates, service

    own = _authority(folder, authority, authority_key)
    typer.echo(certificates.renew(folder, name, days, own, revoke_old=revoke_old))
    if policy is not None:
        typer.echo(service.tell(policy))


@app.command()
def revoke(
    name: Name,
    folder: Folder = _CERTIFICATES,
    serial: Annotated[
        str, typer.Option(help="Revoke that certificate alone, as list prints it.", metavar="NUMBER")
    ] = "",
    authority: Certificate = None,
    authority_key: Key = None,
) -> None:
    """Revoke a developer's certificates. A running service refuses them at once."""
    from sim.deployment import certificates

    try:
        number = int(serial, 16) if serial else None
    except ValueError:
        raise certificates.CertificatesError(f"--serial: must be hexadecimal, not {serial!r}") from None
    count = certificates.revoke(folder, name, _authority(folder, authority, authority_key), number)
    typer.echo(f"{name}: {count} certificate{'s' * (count != 1)} revoked")


@app.command("list")
def list_issued(folder: Folder = _CERTIFICATES) -> None:
    """Print each certificate's number, end and owner. Those that are revoked are marked."""
    from sim.deployment.certificates import issued

    for each in issued(folder):
        typer.echo(f"{each.serial:040X} {each.until:%Y-%m-%d} {each.owner}{' revoked' * each.is_revoked}")


def _authority(folder: Path, certificate: Path | None, key: Path | None) -> RunAuthority:
    from sim.deployment.certificates import CertificatesError, authority_of

    if (certificate is None) != (key is None):
        raise CertificatesError("--authority, --authority-key: give both, or neither")
    return authority_of(certificate or folder / "authority/authority.pem", key or folder / "authority/key.pem")
