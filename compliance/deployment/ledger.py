"""The ledger of a deployment: begun or restored, and in agreement with the policy in force."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from compliance.deployment.policy.loading import Data, fingerprint_of_release
from compliance.deployment.policy.schema import DeploymentSection, Policies
from compliance.ledger import Ledger, look, postgres
from compliance.ledger.accountant import Budget, Neighbours, Rule
from compliance.ledger.entries import Account, LedgerError, ServedData
from compliance.ledger.head import load_key
from compliance.ledger.place import Place, inspect, open_seal, shown

LOG = logging.getLogger(__name__)


_ROOM = 1 << 18
"""Least free disk space, in bytes, on which a ledger can begin."""

IN_FORCE = (
    "policy {} is in force, and this service's file is another one: bring that here, or send this service SIGHUP to "
    "put its own in force"
)


def open_ledger(policy: Policies, data: Sequence[Data]) -> Ledger:
    """Open the ledger, and put the policy in force there."""
    place = policy.deployment
    LOG.info("checking the ledger %s", shown(place.ledger))
    if not _is_begun(place.ledger):  # checked first, so that no unusable ledger is begun
        check_ledger(policy, data)
        for folder in folders_of(place):
            with tempfile.NamedTemporaryFile(dir=folder):
                pass
    ledger = Ledger(place.ledger, open_seal(place.seal, load_key(place.credentials / "seal.key")))
    # One of several services may have an older file: an older policy comes into force again only by SIGHUP. The file of
    # a ledger's only service is its operator's word.
    if isinstance(place.ledger, str) and (holds := ledger.newer_than(policy.digest)):
        LOG.error("%s: nothing new is answered: %s", shown(place.ledger), IN_FORCE.format(holds.hex()[:12]))
        ledger.answer_by(policy.digest)
    else:
        agree(policy, data, ledger)
    return ledger


def check_ledger(policy: Policies, data: Sequence[Data]) -> None:
    """Raise what `open_ledger` would, and write nothing; LedgerError, LedgerUnavailable, SealError."""
    place, key = policy.deployment, policy.deployment.credentials / "seal.key"
    seal = open_seal(place.seal, load_key(key) if key.exists() else b"")
    is_begun = _is_begun(place.ledger)
    accounts, served, _ = _terms(data, seal.derived("data") if is_begun else b"")
    look(place.ledger, seal, accounts, served, is_begun=is_begun)


def check_folders(place: DeploymentSection) -> None:
    """Raise LedgerError for a folder in which nothing can be written."""
    key = place.credentials / "seal.key"
    for folder in (*folders_of(place), *(() if key.exists() else (place.credentials,))):
        there = next(each for each in (folder, *folder.parents) if each.exists())
        if not os.access(there, os.W_OK | os.X_OK):
            raise LedgerError(f"{folder}: this user cannot write {'there' if there == folder else f'in {there}'}")
        disk = os.statvfs(there)
        if disk.f_bavail * disk.f_frsize < _ROOM:
            raise LedgerError(f"{folder}: its disk is full: less than {_ROOM >> 10} KiB are left")


def folders_of(place: DeploymentSection) -> list[Path]:
    """Return the folders that hold the ledger and its head; none for what is in a database."""
    return [kept.parent for kept in (place.ledger, place.seal) if isinstance(kept, Path)]


def agree(policy: Policies, data: Sequence[Data], ledger: Ledger) -> None:
    """Set budgets and developers' shares as in the policy, and record it; all of it, or nothing."""
    accounts, served, shares = _terms(data, ledger.derived_key("data"))
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


def _terms(
    data: Sequence[Data], data_key: bytes
) -> tuple[list[Account], list[ServedData], list[tuple[str, str, float, float]]]:
    """Return a policy's budgets, its data sets with their developers, and each developer's epsilon and delta."""
    alone = len(data) == 1 and data[0].policy.release is None
    accounts: list[Account] = []
    served: list[ServedData] = []
    shares: list[tuple[str, str, float, float]] = []
    for each in data:
        name, developers, audited = each.policy.data_name, each.policy.developers, each.policy.budget
        budget = Budget(audited.epsilon, audited.delta, Rule(audited.rule))
        whose, whose_released = each.traits
        # A new ledger can compare people only between this policy's data sets.
        bound = each.fingerprint(data_key) + (b"" if alone and not data_key else whose.sealed(data_key))
        accounts.append(Account(name, Neighbours.A_FLIP, budget, bound))
        served.append(ServedData(name, tuple(developers), each.policy.audit.metrics, each.policy.data.minimum_group))
        shares += [(name, developer, share.epsilon, share.delta) for developer, share in developers.items()]
        if each.policy.release is not None and whose_released is not None:
            name, whole = each.policy.release_name, Budget(each.policy.release.epsilon)
            bound = fingerprint_of_release(each.policy, data_key) + whose_released.sealed(data_key)
            accounts.append(Account(name, Neighbours.ATTRIBUTES, whole, bound))
            served.append(ServedData(name, tuple(developers)))
            shares += [(name, developer, share.release, 0.0) for developer, share in developers.items()]
    return accounts, served, shares


def check_begun(place: DeploymentSection, key: Path, *, new: bool) -> None:
    """Raise LedgerError if a ledger is lost or not new as `new` claims: a new budget is unspent."""
    ledger, head = shown(place.ledger), shown(place.seal)
    has_key = key.exists()
    sealed, begun = open_seal(place.seal, load_key(key) if has_key else b"").exists(), _is_begun(place.ledger)
    if not has_key and (sealed or begun):
        raise LedgerError(f"{key}: is missing, with which {ledger} and its head {head} were made: bring it back")
    # Reading a long ledger takes a while: it is read only without a sealed head.
    empty = not sealed and not (begun and any(each.records for each in inspect(place.ledger, untouched=True)))
    if empty and has_key and not new:
        raise LedgerError(
            f"{ledger}: the ledger and its head {head} are gone, but there is {key}, which is made with "
            "them: bring them back (is a volume not mounted?), or start with --new-ledger, which forgets what was spent"
        )
    if new and not empty:
        raise LedgerError(f"{ledger}: it, or its head {head}, is there: leave out --new-ledger")
    if not begun:
        check_folders(place)


def _is_begun(ledger: Place) -> bool:
    if isinstance(ledger, str):
        return postgres.has_begun(ledger)
    return ledger.exists() and ledger.stat().st_size > 0
