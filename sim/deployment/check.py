"""The check of a policy before it is served: whether it can be, and what its answers will be worth."""

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
"""Most seconds for the process at the address to prove to be this deployment's service."""


class CheckError(UserError):
    """A system error that would prevent a start. Its text is one line."""


def check(
    path: Path, *, listen: str | None, new_ledger: bool, even_if_worthless: bool, even_if_revealing: bool
) -> Iterator[str]:
    """Make all checks of a start, with its parameters, and yield its lines on what answers are worth; write nothing.

    The deployment's own service may be running. Raises UserError with the line with which the start would be refused.
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
    """Refuse an address in use, except by a process that proves to be this deployment's compliance."""
    try:
        server.check(address, credentials)
    except OSError:
        if status(address, credentials, _SECONDS) is None:
            raise
