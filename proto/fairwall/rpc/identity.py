"""Who is calling: read from the certificate, never from a request.

A party's certificate carries the SAN URI ``fairwall://<run>/<party>``, which says who it is as a caller, and the SAN
DNS name ``<party>.<run>.fairwall``, which a client demands of the server it means to reach.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import grpc

PARTIES = ("compliance", "developer", "adversary", "referee")
SERVERS = ("compliance", "developer", "referee")
"""The parties whose certificate may stand for a server."""


@dataclass(frozen=True)
class Credentials:
    """What a party proves itself with: PEM texts. The private key is its own alone."""

    run: str
    party: str
    authority: str
    certificate: str
    key: str = field(repr=False)


def uri_of(run: str, party: str) -> str:
    """Name a party as a caller."""
    return f"fairwall://{run}/{party}"


def server_name_of(run: str, party: str) -> str:
    """Name a party as a server."""
    return f"{party}.{run}.fairwall"


def caller_of(context: grpc.ServicerContext, run: str) -> str | None:
    """Name the party of this run that is calling.

    Returns
    -------
    str or None
        One of ``PARTIES``; None where the certificate names no party of this run, or more than one.
    """
    names: Any = context.auth_context().get("x509_subject_alternative_name", ())
    callers = [party for party in PARTIES if uri_of(run, party).encode() in names]
    return callers[0] if len(callers) == 1 else None
