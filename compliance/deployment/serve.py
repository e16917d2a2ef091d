"""Compliance as a deployment: it serves audits, counts by group and releases by a policy, until it is told to end."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar
from urllib.parse import urlsplit

from compliance.answers.audit_service import AuditService
from compliance.answers.audits import Case
from compliance.answers.group_service import GroupService
from compliance.answers.groups import GroupCase
from compliance.answers.release_service import ReleaseCase, ReleaseService
from compliance.answers.releases import Release
from compliance.deployment.running import Running
from compliance.ledger import Ledger
from compliance.ledger.accountant import Budget, Neighbours, Rule
from compliance.ledger.entries import Account, LedgerError, Served
from compliance.ledger.file import inspect
from compliance.ledger.head import Seal, load_key
from compliance.ledger.writable import Writable
from compliance.records.groups import Grouped
from compliance.records.people import Records
from compliance.records.rows import Rows
from fairwall.compliance.v1.audit_service_pb2_grpc import add_AuditServiceServicer_to_server
from fairwall.compliance.v1.group_service_pb2_grpc import add_GroupServiceServicer_to_server
from fairwall.compliance.v1.release_service_pb2_grpc import add_ReleaseServiceServicer_to_server
from fairwall.errors import UserError
from fairwall.laws.exposure import Limit
from fairwall.rpc import confine, identity, journal, memory, process, server
from fairwall.rpc.confine import Layer
from fairwall.rpc.quota import Quota
from fairwall.rpc.revoked import Revoked
from fairwall.rpc.server import Deployed

if TYPE_CHECKING:
    import grpc
    import numpy as np
    from numpy.typing import NDArray

    from compliance.answers.releases import Column
    from compliance.deployment.policy.schema import DeploymentSection, Policies, Policy
    from compliance.records.same_people import Traits

    Released: TypeAlias = tuple[tuple[Column, ...], NDArray[np.uint8]]

LOG = logging.getLogger(__name__)

_T = TypeVar("_T")


def serve(path: Path, *, new_ledger: bool, even_if_worthless: bool) -> None:
    """Serve by a policy, until told to end; a policy that cannot be served is one line and status 2.

    Parameters
    ----------
    path : Path
        The policy's file.
    new_ledger : bool
        Whether to begin a ledger where one was lost.
    even_if_worthless : bool
        Whether to serve answers that are worth less than a guess.
    """
    # Imported here: no game waits for the library that validates policies.
    from compliance.deployment import worth
    from compliance.deployment.policy.checks import check_change
    from compliance.deployment.policy.reading import read

    process.log_of_service()
    journal.start()
    process.open_files_max()
    memory.keep_small()
    confine.guard()
    policy: Policies
    deployed: Deployed
    cases: dict[str, Case] = {}
    releases: dict[str, ReleaseCase | Release] = {}
    grouped: dict[str, GroupCase] = {}
    made: list[Path] = []

    def register(grpc_server: grpc.Server) -> None:
        add_AuditServiceServicer_to_server(AuditService(cases), grpc_server)
        add_GroupServiceServicer_to_server(GroupService(grouped), grpc_server)
        if policy.releases:
            add_ReleaseServiceServicer_to_server(ReleaseService(releases), grpc_server)

    def put_in_force(data: Sequence[_Data], ledger: Ledger) -> None:
        """From here on nothing can be refused; calls that are under way end by what they began with."""
        _replace(cases, {each.policy.data_name: _case(each, ledger) for each in data})
        _replace(grouped, _grouped(data, cases))
        sold = [each for each in data if each.released is not None]
        _replace(releases, {each.policy.data_name: _release(each, ledger) for each in sold})

    def again() -> None:
        """Put the policy in force as it is now, or leave all as it was."""
        nonlocal policy, deployed
        try:
            new = read(path)
            check_change(policy, new)
            credentials, revoked = _credentials(new, deployed.revoked)
            data = _load(new)
            _agree(new, data, ledger)
        except (UserError, OSError) as error:
            LOG.error("SIGHUP: what was in force before stays so: %s", error)
            running.says(policy.digest, str(error))
            return
        put_in_force(data, ledger)
        deployed = Deployed(_admitted(new), writable, revoked)
        listening.admit(deployed)
        listening.show(credentials)
        policy = new
        running.says(policy.digest)
        for each in data:
            LOG.info("SIGHUP: %s", each.policy.summary)
            worth.say(each.policy, list(worth.worths(each.policy, each.records)))

    try:
        with process.until_told(again):
            policy = read(path)
            credentials, revoked = _credentials(policy)
            layers = _confined(path, policy, made, new=new_ledger)
            data = _load(policy)
            found = [list(worth.worths(each.policy, each.records)) for each in data]
            for each, its in zip(data, found, strict=True):
                if not even_if_worthless:
                    worth.check(each.policy, its)
            server.check(policy.deployment.listen, credentials)
            ledger = _ledger(policy, data)
            running, writable = Running(policy.deployment.ledger), Writable(ledger)
            put_in_force(data, ledger)
            deployed = Deployed(_admitted(policy), writable, revoked)
            layers = confine.filtered(layers, listen=policy.deployment.listen, connects=_connects(policy))
            stop_telemetry = _telemetry(policy, lambda: _accounts(policy), ledger, deployed)
            listening = server.serve(register, credentials, policy.deployment.listen, deployed)
            running.says(policy.digest)
            for each, its in zip(data, found, strict=True):
                LOG.info("%s", each.policy.summary)
                worth.say(each.policy, its)
            process.announce(listening.address, layers)
    except (UserError, OSError) as error:
        print(f"compliance: {error}", file=sys.stderr)  # noqa: T201
        for folder in reversed(made):
            with contextlib.suppress(OSError):  # it is not empty
                folder.rmdir()
        raise SystemExit(2) from None
    listening.stop()
    stop_telemetry()


def _telemetry(
    policy: Policies, accounts: Callable[[], list[tuple[str, str]]], ledger: Ledger, deployed: Deployed
) -> Callable[[], object]:
    """Send metrics and traces if the policy says where to; what ends that."""
    if policy.deployment.telemetry is None:
        return lambda: None
    from compliance.deployment import telemetry

    return telemetry.start(policy.deployment.telemetry, policy.deployment.name, ledger, accounts, deployed.is_ready)


def _accounts(policy: Policies) -> list[tuple[str, str]]:
    """List the data sets, and the developers on them; "" for all developers together."""
    return [
        (name, developer)
        for each in policy.datasets.values()
        for name in (each.data_name, *([each.release_name] if each.release else []))
        for developer in ("", *each.developers)
    ]


@dataclass(frozen=True)
class _Data:
    """A data set: its policy, and what was read by it."""

    policy: Policy
    records: Records
    rows: Rows
    grouped: Grouped | None
    released: Released | None
    traits: tuple[Traits, Traits | None]
    """Of the people who are audited, and of those whose attributes are released."""
    answers_a_day: Mapping[str, int]


def _load(policy: Policies) -> list[_Data]:
    from compliance.deployment.policy import loading

    hidden = {column for each in policy.datasets.values() for column in each.hidden}
    return [
        _Data(
            each,
            *loading.load(each),
            loading.load_release(each),
            loading.traits(each, hidden),
            policy.answers_a_day,
        )
        for each in policy.datasets.values()
    ]


def _replace(served: dict[str, _T], by: Mapping[str, _T]) -> None:
    """Change what is served while it is: what stays is there at every moment."""
    served.update(by)
    for name in served.keys() - by.keys():
        del served[name]


def _case(data: _Data, ledger: Ledger) -> Case:
    """Choose the mechanism that a deployment answers with; its noise is the system's, never seeded."""
    policy = data.policy
    return Case(
        dataset=policy.data_name,
        records=data.records,
        rows=data.rows,
        mechanism=policy.mechanism,
        ledger=ledger,
        queries_max=policy.audit.queries_max,
        epsilon_max=policy.epsilon_max,
        epsilon_min=policy.audit.epsilon_min,
        answer_seconds=policy.audit.answer_seconds,
        delta=policy.audit.delta,
        precision=policy.audit.precision,
        developers=frozenset(policy.developers),
        shares=policy.shares,
        answers_a_day=data.answers_a_day,
    )


def _grouped(data: Sequence[_Data], cases: Mapping[str, Case]) -> dict[str, GroupCase]:
    """Open what is asked by group, at the terms of the audits of the same people."""
    return {
        each.policy.data_name: GroupCase(
            cases[each.policy.data_name],
            each.grouped,
            each.policy.data.least_share,
            Limit(each.policy.audit.reveal_max, each.policy.shares),
        )
        for each in data
        if each.grouped is not None
    }


def _release(data: _Data, ledger: Ledger) -> Release:
    policy, released = data.policy, data.released
    assert policy.release is not None, "what was released was read by it"
    assert released is not None
    return Release(
        policy.release_name,
        policy.release.protocol,
        *released,
        ledger,
        seed=None,
        epsilon_min=policy.release.epsilon_min,
        developers=frozenset(policy.developers),
        answers_a_day=data.answers_a_day,
    )


def _confined(path: Path, policy: Policies, made: list[Path], *, new: bool) -> tuple[Layer, ...]:
    """Make the folders that are written, and give up all files but those, and those that are read.

    Which folders it has made, a start that fails is told by the list, to take them back: the outer ones first.
    """
    place = policy.deployment
    key = place.credentials / "seal.key"
    _check_begun(place, key, new=new)
    writes = [place.ledger.parent, place.seal.parent]
    for folder in writes:
        made += [each for each in reversed((folder, *folder.parents)) if not each.exists()]
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.environ["SQLITE_TMPDIR"] = str(place.ledger.parent)
    if not key.exists():  # it is made once the data are known to be sound
        writes.append(place.credentials)
    reads = [path, key]
    for each in policy.datasets.values():
        reads += [each.data.source, *([each.release.source] if each.release else [])]
    return confine.deployed(listen=place.listen, connects=_connects(policy), reads=reads, folders=writes, made=made)


def _connects(policy: Policies) -> list[str]:
    """Say where a deployment sends anything."""
    told = urlsplit(policy.deployment.telemetry or "")
    return [f"{told.hostname}:{told.port}"] if told.hostname else []


def _ledger(policy: Policies, data: Sequence[_Data]) -> Ledger:
    """Open the ledger, and put the policy in force there."""
    place = policy.deployment
    if not _is_written(place.ledger):  # nothing is begun that then could not be used
        _agree(policy, data, Ledger())
        for folder in (place.ledger.parent, place.seal.parent):
            with tempfile.NamedTemporaryFile(dir=folder):
                pass
    ledger = Ledger(place.ledger, Seal(place.seal, load_key(place.credentials / "seal.key")))
    _agree(policy, data, ledger)
    return ledger


def _agree(policy: Policies, data: Sequence[_Data], ledger: Ledger) -> None:
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
            from compliance.deployment.policy.loading import fingerprint_of_release

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


def _check_begun(place: DeploymentSection, key: Path, *, new: bool) -> None:
    """Tell a ledger that is begun from one that is lost: only the first has a budget of which nothing is spent."""
    if not key.exists() and (place.seal.exists() or _is_written(place.ledger)):
        raise LedgerError(
            f"{key}: is missing, with which {place.ledger} and its head {place.seal} were made: bring it back"
        )
    empty = not place.seal.exists() and not (_is_written(place.ledger) and inspect(place.ledger).records)
    if empty and key.exists() and not new:
        raise LedgerError(
            f"{place.ledger}: the ledger and its head {place.seal} are gone, but there is {key}, which is made with "
            "them: bring them back (is a volume not mounted?), or start with --new-ledger, which forgets what was spent"
        )
    if new and not empty:
        raise LedgerError(f"{place.ledger}: it, or its head {place.seal}, is there: leave out --new-ledger")


def _is_written(ledger: Path) -> bool:
    return ledger.exists() and ledger.stat().st_size > 0


def _credentials(policy: Policies, before: Revoked | None = None) -> tuple[identity.Credentials, Revoked]:
    """Read what the service proves itself with, and whose certificates hold no longer."""
    credentials = identity.load(policy.deployment.credentials)
    expected = (policy.deployment.name, "compliance")
    if (credentials.run, credentials.party) != expected:
        raise identity.CredentialsError(
            f"{policy.deployment.credentials}: the certificate is for {credentials.party} of {credentials.run}, "
            f"not for compliance of {policy.deployment.name}"
        )
    return credentials, Revoked(policy.deployment.credentials / "revoked.pem", credentials.authority, before)


def _admitted(policy: Policies) -> dict[identity.Caller, Quota]:
    """List the policy's developers, and compliance itself, which may ask whether its server is well."""
    run = policy.deployment.name
    developers = {identity.Caller(run, "developer", name): quota for name, quota in policy.quotas.items()}
    return {identity.Caller(run, "compliance"): Quota(), **developers}
