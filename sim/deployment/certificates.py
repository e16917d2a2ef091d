"""A deployment's certificates as folders of files, one for each who needs one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from fairwall.errors import UserError
from fairwall.rpc.identity import NAME, Credentials
from sim.play.keys import mint


class CertificatesError(UserError):
    """Certificates that cannot be minted as asked. Its text is one line that says what would be right."""


def write(folder: Path, deployment: str, developers: Sequence[str], days: int) -> list[Path]:
    """Mint the certificates of a deployment, each into a folder of its own, and drop the authority's key.

    Parameters
    ----------
    folder : Path
        Gets ``compliance/`` and a ``developer-<name>/`` for each developer, with ``authority.pem``,
        ``certificate.pem`` and ``key.pem`` in it.
    deployment : str
    developers : sequence of str
    days : int
        How long the certificates hold.

    Returns
    -------
    list of Path
        The folders.

    Raises
    ------
    CertificatesError
        If a name cannot stand in a certificate, or a folder is there already.
    OSError
    """
    for name in (deployment, *developers):
        if not NAME.fullmatch(name):
            raise CertificatesError(f"{name!r}: a name must be 1 to 63 lower-case letters, digits and hyphens")
    if not developers or len(set(developers)) < len(developers):
        raise CertificatesError("--developer: name at least one developer, and each once")
    minted = mint(deployment, ("compliance",), developers=developers, valid=timedelta(days=days))
    folders = {folder / owner: credentials for owner, credentials in minted.items()}
    for path in folders:
        if path.exists():
            raise CertificatesError(f"{path}: is there already; a certificate is never overwritten")
    for path, credentials in folders.items():
        _write(path, credentials)
    return list(folders)


def _write(folder: Path, credentials: Credentials) -> None:
    folder.mkdir(parents=True, mode=0o700)
    for name in ("authority", "certificate", "key"):
        # Born with its mode: there is no moment at which others can read the key.
        descriptor = os.open(folder / f"{name}.pem", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(getattr(credentials, name))
