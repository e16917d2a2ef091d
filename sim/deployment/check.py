"""Whether a policy can be served, and what its answers will be worth, before it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from compliance.deployment import worth
from compliance.deployment.ledger import check_folders, check_ledger
from compliance.deployment.policy.loading import counted, load_all
from compliance.deployment.policy.reading import read
from compliance.deployment.serve import check_at_once, check_worth
from fairwall.errors import UserError
from fairwall.rpc import server
from fairwall.rpc.identity import Credentials
from sim.deployment.health import status

_SECONDS = 2.0
"""How long whoever has the address may take to say that it is this deployment's service."""


class CheckError(UserError):
    """What the system refuses of a start. Its text is one line."""


def check(
    path: Path, *, listen: str | None, new_ledger: bool, even_if_worthless: bool, even_if_revealing: bool
) -> Iterator[str]:
    """Look at all that a start looks at; give what it would say of answers' worth, line by line, and write nothing.

    The deployment's own service may be running. Parameters are those of a start. Raises UserError where that would be
    refused, with its one line.
    """
    try:
        policy = read(path, listen)
        credentials, _ = check_at_once(policy, new=new_ledger)
        _check_address(policy.deployment.listen, credentials)
        check_folders(policy.deployment)
        data = load_all(policy)
        check_ledger(policy, data)
    except OSError as error:
        raise CheckError(str(error)) from None
    for each in data:
        yield each.policy.summary
        yield from counted(each.policy)
        found = list(worth.worths(each.policy, each.first))
        yield from (line for _, line in worth.told(each.policy, each.first, found))
    check_worth(data, worthless=even_if_worthless, revealing=even_if_revealing)


def _check_address(address: str, credentials: Credentials) -> None:
    """Refuse an address that is in use, unless by whoever proves to be compliance of this deployment."""
    try:
        server.check(address, credentials)
    except OSError:
        if status(address, credentials, _SECONDS) is None:
            raise
