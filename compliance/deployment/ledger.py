"""The ledger of a deployment: begun or brought back, and in agreement with the policy that is in force."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Sequence
from pathlib import Path

from compliance.deployment.policy.loading import Data, fingerprint_of_release
from compliance.deployment.policy.schema import DeploymentSection, Policies
from compliance.ledger import Ledger
from compliance.ledger.accountant import Budget, Neighbours, Rule
from compliance.ledger.entries import Account, LedgerError, Served
from compliance.ledger.head import Seal, load_key
from compliance.ledger.place import inspect

LOG = logging.getLogger(__name__)


def open_ledger(policy: Policies, data: Sequence[Data]) -> Ledger:
    """Open the ledger, and put the policy in force there."""
    place = policy.deployment
    if not _is_written(place.ledger):  # nothing is begun that then could not be used
        agree(policy, data, Ledger())
        for folder in (place.ledger.parent, place.seal.parent):
            with tempfile.NamedTemporaryFile(dir=folder):
                pass
    ledger = Ledger(place.ledger, Seal(place.seal, load_key(place.credentials / "seal.key")))
    agree(policy, data, ledger)
    return ledger


def agree(policy: Policies, data: Sequence[Data], ledger: Ledger) -> None:
    """Set budgets and each developer's shares as the policy says, and record it; all of it, or nothing."""
    data_key = ledger.derived_key("data")
    accounts: list[Account] = []
    served: list[Served] = []
    shares: list[tuple[str, str, float, float]] = []
    for each in data:
        name, developers, audited = each.policy.data_name, each.policy.developers, each.policy.budget
        budget = Budget(audited.epsilon, audited.delta, Rule(audited.rule))
        whose, whose_released = each.traits
        bound = each.records.fingerprint(data_key) + whose.sealed(data_key)
        accounts.append(Account(name, Neighbours.A_FLIP, budget, bound))
        served.append(Served(name, tuple(developers), each.policy.audit.metrics, each.policy.data.minimum_group))
        shares += [(name, developer, share.epsilon, share.delta) for developer, share in developers.items()]
        if each.policy.release is not None and whose_released is not None:
            name, whole = each.policy.release_name, Budget(each.policy.release.epsilon)
            bound = fingerprint_of_release(each.policy, data_key) + whose_released.sealed(data_key)
            accounts.append(Account(name, Neighbours.ATTRIBUTES, whole, bound))
            served.append(Served(name, tuple(developers)))
            shares += [(name, developer, share.release, 0.0) for developer, share in developers.items()]
    ledger.check_budgets(accounts, served)
    for account in accounts:
        ledger.set_budget(account.dataset, account.neighbours, account.budget, account.data)
    for share in shares:
        ledger.allocate(*share)
    for account in accounts:
        spent = ledger.standing(account.dataset).spent
        if spent >= account.budget.epsilon:
            LOG.warning(
                "%s: %g is spent, of %g: it answers repeats alone", account.dataset, spent, account.budget.epsilon
            )
    ledger.admit(policy.digest, served)


def check_begun(place: DeploymentSection, key: Path, *, new: bool) -> None:
    """Tell a ledger that is begun from one that is lost: only the first has a budget of which nothing is spent."""
    if not key.exists() and (place.seal.exists() or _is_written(place.ledger)):
        raise LedgerError(
            f"{key}: is missing, with which {place.ledger} and its head {place.seal} were made: bring it back"
        )
    written = _is_written(place.ledger) and any(each.records for each in inspect(place.ledger))
    empty = not place.seal.exists() and not written
    if empty and key.exists() and not new:
        raise LedgerError(
            f"{place.ledger}: the ledger and its head {place.seal} are gone, but there is {key}, which is made with "
            "them: bring them back (is a volume not mounted?), or start with --new-ledger, which forgets what was spent"
        )
    if new and not empty:
        raise LedgerError(f"{place.ledger}: it, or its head {place.seal}, is there: leave out --new-ledger")


def _is_written(ledger: Path) -> bool:
    return ledger.exists() and ledger.stat().st_size > 0
