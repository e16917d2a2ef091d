"""Compliance as a deployment: it serves audits, counts by group and releases by a policy, until a signal ends it."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from compliance.answers.accounts import Accounts
from compliance.answers.sealed import ScorerProcess, check_libraries
from compliance.deployment import answer_value
from compliance.deployment.ledger import check_begun, folders_of, open_ledger
from compliance.deployment.policy.loading import Data, files_of, load_all
from compliance.deployment.policy.reading import read
from compliance.deployment.policy.schema import Policies
from compliance.deployment.reload import RunningService, admitted, begin, credentials_of
from compliance.deployment.running import Running
from compliance.ledger import postgres
from compliance.ledger.place import is_database
from compliance.ledger.writable import Writable
from fairwall.errors import UserError
from fairwall.rpc import confine, journal, memory, process, server
from fairwall.rpc.confine import Layer
from fairwall.rpc.identity import Credentials
from fairwall.rpc.revoked import Revoked
from fairwall.rpc.server import Deployed, Server

LOG = logging.getLogger(__name__)


def serve(
    path: Path, *, listen: str | None, new_ledger: bool, even_if_worthless: bool, even_if_revealing: bool
) -> None:
    """Serve by a policy until a signal; a policy that cannot be served is one line and status 2.

    `listen`: address "host:port", if not the policy's. `new_ledger`: whether to begin a ledger where one was lost.
    `even_if_worthless`: whether to serve answers worth less than a guess. `even_if_revealing`: whether to serve answers
    that reveal more than the policy allows.
    """
    process.log_of_service()
    journal.start()
    process.open_files_max()
    memory.keep_small()
    confine.guard()
    made: list[Path] = []
    try:
        with process.until_told(lambda: service.reload(listening)):
            service, listening, stop_telemetry = _start(
                path,
                made,
                listen=listen,
                new_ledger=new_ledger,
                worthless=even_if_worthless,
                revealing=even_if_revealing,
            )
    except (UserError, OSError) as error:
        print(f"compliance: {error}", file=sys.stderr)  # noqa: T201
        for folder in reversed(made):
            with contextlib.suppress(OSError):  # it is not empty
                folder.rmdir()
        raise SystemExit(2) from None
    listening.stop()
    stop_telemetry()
    service.work.shutdown(wait=False, cancel_futures=True)
    service.ledger.close()  # the file is then complete without its log


def _start(
    path: Path, made: list[Path], *, listen: str | None, new_ledger: bool, worthless: bool, revealing: bool
) -> tuple[RunningService, Server, Callable[[], object]]:
    """Start to serve a checked policy; return the service, the server, and a function that stops telemetry.

    Health is answered as soon as the checks that need no data and no ledger have passed.
    """
    policy = read(path, listen)
    LOG.info("starting: %s: %s", path, ", ".join(policy.datasets))
    credentials, revoked = check_at_once(policy, new=new_ledger)
    server.check(policy.deployment.listen, credentials)
    scorer = ScorerProcess() if policy.scores else None  # before this process is confined, and reads protected data
    if scorer is not None:
        LOG.info("models that are handed over run in a process %s", scorer.confined)
    layers = _confined(path, policy, made)
    accounts, nobody_yet = Accounts(), Deployed(admitted(policy), revoked=revoked, is_starting=True)
    listening = begin(policy, credentials, nobody_yet, accounts)
    try:
        data = load_all(policy)
        check_worth(data, worthless=worthless, revealing=revealing)
        ledger = open_ledger(policy, data)
        deployed = Deployed(nobody_yet.admitted, Writable(ledger), revoked)
        service = RunningService(
            path, listen, policy, ledger, Running(policy.deployment.ledger), deployed, accounts, scorer=scorer
        )
        local = any(each.local for each in databases(policy))
        layers = confine.filtered(layers, listen=listening.address, connects=_connects(policy), local=local)
        stop_telemetry = _telemetry(service)
    except BaseException:
        listening.stop()
        raise
    service.put_in_force(data)
    service.running.says(policy.digest)
    for each in data:
        LOG.info("%s", each.policy.summary)
    listening.admit(deployed)
    process.announce(listening.address, layers)
    service.follow()
    return service, listening, stop_telemetry


def check_at_once(policy: Policies, *, new: bool) -> tuple[Credentials, Revoked]:
    """Make the checks that need no data; return the credentials and the revoked certificates.

    CredentialsError, RevokedError, LedgerError, LedgerUnavailable, SealError or TelemetryError, each of one line.
    """
    place, found = policy.deployment, credentials_of(policy)
    databases(policy)
    check_begun(place, place.credentials / "seal.key", new=new)
    if policy.scores:
        check_libraries()
    if place.telemetry is not None:
        from compliance.deployment import telemetry

        telemetry.check()
    return found


def check_worth(data: Sequence[Data], *, worthless: bool, revealing: bool) -> None:
    """Raise PolicyError for answers worth less than a guess, or that reveal more than a policy allows."""
    for each in data:
        if not worthless:
            answer_value.check(each.policy, each.first)
        if not revealing:
            answer_value.check_revealed(each.policy, each.first)


def _telemetry(service: RunningService) -> Callable[[], object]:
    """Send metrics and traces if the policy names a collector; return a function that stops this."""
    place = service.policy.deployment
    if place.telemetry is None:
        return lambda: None
    from compliance.deployment import telemetry

    return telemetry.start(
        place.telemetry, place.name, service.ledger, lambda: _accounts(service.policy), service.deployed.is_ready
    )


def _accounts(policy: Policies) -> list[tuple[str, str]]:
    """Return the data sets, each with its developers; "" for all developers together."""
    return [
        (name, developer)
        for each in policy.datasets.values()
        for name in (each.data_name, *([each.release_name] if each.release else []))
        for developer in ("", *each.developers)
    ]


def _confined(path: Path, policy: Policies, made: list[Path]) -> tuple[Layer, ...]:
    """Make the folders that are written, and give up all other files but those that are read.

    `made` receives the new folders, the outer ones first, so that a start that fails can remove them.
    """
    place = policy.deployment
    key = place.credentials / "seal.key"
    writes = folders_of(place)
    for folder in writes:
        made += [each for each in reversed((folder, *folder.parents)) if not each.exists()]
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if writes:
        memory.spill_to(writes[0])
    if isinstance(place.ledger, Path):
        os.environ["SQLITE_TMPDIR"] = str(place.ledger.parent)
    if not key.exists():  # made after the data have passed all checks
        writes.append(place.credentials)
    reads = [path, key, *(file for each in databases(policy) for file in each.files)]
    for each in policy.datasets.values():
        reads += [*files_of(each), *([each.release.source] if each.release else [])]
        reads += [each.law.preset.file] if each.law else []
    return confine.deployed(listen=place.listen, connects=_connects(policy), reads=reads, folders=writes, made=made)


def _connects(policy: Policies) -> list[str]:
    told = urlsplit(policy.deployment.telemetry or "")
    theirs = [server for each in databases(policy) for server in each.servers]
    return [*([f"{told.hostname}:{told.port}"] if told.hostname else []), *theirs]


def databases(policy: Policies) -> list[postgres.Uses]:
    """Return the connection requirements of the databases that hold the ledger, its head, or people."""
    place = policy.deployment
    sources = [str(each.data.source) for each in policy.datasets.values() if is_database(str(each.data.source))]
    return [postgres.uses(kept) for kept in (place.ledger, place.seal, *sources) if isinstance(kept, str)]
