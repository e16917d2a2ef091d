"""Judge a client's request ids: nobody may be able to predict them, or to tell who made them."""

from __future__ import annotations

import contextlib
import functools
import getpass
import math
import os
import platform
import socket
import string
from collections.abc import Iterable, Sequence
from pathlib import Path

from sim.conformance.calls import ProtocolViolation

BITS = 64
_SPARE_BITS = 8
"""Tolerance in bits. Of 16 random hexadecimal digits, two or more are equal in five ids with a probability of 3e-8."""

_ALPHABETS = (
    string.digits,
    "0123456789abcdef",
    "0123456789ABCDEF",
    string.digits + string.ascii_lowercase,
    string.digits + string.ascii_uppercase,
    string.digits + string.ascii_letters,
    string.digits + string.ascii_letters + "+/-_",
)
USER, MACHINE = "somebody-of-the-kit", "machine-of-the-kit"
"""Names of the user and of the machine that a client is started with."""

_SHORT = 4
"""Shortest name that is searched for; shorter ones occur anywhere."""


def require_unguessable(ids: Sequence[str]) -> None:
    """Demand that the ids of several runs, at least five, have nothing in common."""
    if len(set(ids)) < len(ids):
        raise ProtocolViolation("another run, at the same time by its clock, sent another request under the same id")
    bits = _bits(ids)
    if bits < BITS - _SPARE_BITS:
        raise ProtocolViolation(f"request ids vary by about {bits:.0f} bits; {BITS} random ones are due")


def require_nameless(texts: Iterable[str], what: str) -> None:
    """Demand that the texts do not all contain a name of this machine or of its user."""
    known = [text.lower() for text in texts]
    for name in names():
        if known and all(name.lower() in text for text in known):
            raise ProtocolViolation(f"{what} tells the name of its machine or of its user")


@functools.cache
def names() -> tuple[str, ...]:
    """Return the names of this machine and of its user."""
    host = {socket.gethostname(), platform.node(), socket.getfqdn()}
    found = {USER, MACHINE, *host, *(name.partition(".")[0] for name in host), str(Path.home()), str(Path.cwd())}
    for key in ("USER", "LOGNAME", "HOSTNAME"):
        found.add(os.environ.get(key, ""))
    with contextlib.suppress(KeyError, OSError):
        found.add(getpass.getuser())
    return tuple(sorted(name for name in found if len(name) >= _SHORT and name != "localhost"))


def _bits(ids: Sequence[str]) -> float:
    """Estimate by how many bits ids vary: each differing place counts as one letter of their alphabet."""
    width = max(map(len, ids))
    # Numbers grow at their beginning, texts at their end: pad on either side.
    return min(_bits_of([text.ljust(width) for text in ids]), _bits_of([text.rjust(width) for text in ids]))


def _bits_of(ids: Sequence[str]) -> float:
    places = [set(place) for place in zip(*ids, strict=True)]
    varying = [place for place in places if len(place) > 1]
    letters = set().union(*varying) - {" "}
    alphabet = next((each for each in _ALPHABETS if letters <= set(each)), string.printable[:95])
    return len(varying) * math.log2(len(alphabet))
