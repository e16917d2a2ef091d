"""Whether a policy can be served, and what its answers will be worth, before it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from compliance.deployment import worth
from compliance.deployment.ledger import agree
from compliance.deployment.policy.loading import load_all
from compliance.deployment.policy.reading import read
from compliance.deployment.reload import credentials_of
from compliance.ledger import Ledger


def check(path: Path) -> Iterator[str]:
    """Read a policy, its credentials and its data as a start does; give what a start would say, line by line.

    Nothing is written, and nothing spent; whether the deployment's own ledger goes with the policy a start finds out.
    Raises UserError where a start would refuse, with its one line.
    """
    policy = read(path)
    credentials_of(policy)
    data = load_all(policy)
    agree(policy, data, Ledger())  # an empty one: it refuses the same people under two names
    for each in data:
        found = list(worth.worths(each.policy, each.first))
        yield each.policy.summary
        yield from (line for _, line in worth.told(each.policy, each.first, found))
        worth.check(each.policy, found)
        worth.check_revealed(each.policy, each.first, found)
