"""A deployment while it runs, and its change to another policy: all of it, or nothing."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import signal
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from compliance.answers.accounts import Accounts
from compliance.answers.audit_service import AuditService
from compliance.answers.group_service import GroupService
from compliance.answers.releases import ReleaseService
from compliance.answers.sealed import ScorerProcess
from compliance.deployment.accounts import opened
from compliance.deployment.ledger import IN_FORCE, agree
from compliance.deployment.policy.checks import check_change
from compliance.deployment.policy.loading import Data, load_all
from compliance.deployment.policy.reading import read
from compliance.deployment.policy.schema import Policies
from compliance.deployment.running import Running
from compliance.ledger import Ledger
from compliance.ledger.entries import LedgerError
from compliance.ledger.store import LedgerUnavailable
from fairwall import toml
from fairwall.compliance.v1.audit_service_pb2_grpc import add_AuditServiceServicer_to_server
from fairwall.compliance.v1.group_service_pb2_grpc import add_GroupServiceServicer_to_server
from fairwall.compliance.v1.release_service_pb2_grpc import add_ReleaseServiceServicer_to_server
from fairwall.errors import UserError
from fairwall.rpc import identity, server
from fairwall.rpc.fair_use import Quota
from fairwall.rpc.revoked import Revoked
from fairwall.rpc.server import Deployed, Server

if TYPE_CHECKING:
    import grpc

LOG = logging.getLogger(__name__)

_LOOK_SECONDS = 0.3
"""Seconds between checks whether another service has put a policy in force."""


@dataclass
class RunningService:
    """A running deployment.

    `listen`: the address, if not the file's. `running`: shows commands which policy that is. `deployed`: the callers
    admitted, and whether the service is ready. `work`: computes the worth of answers in the background.
    """

    path: Path
    listen: str | None
    policy: Policies
    ledger: Ledger
    running: Running
    deployed: Deployed
    accounts: Accounts = field(default_factory=Accounts)
    work: Executor = field(default_factory=lambda: ThreadPoolExecutor(1, "worth"))
    scorer: ScorerProcess | None = None
    """Scores with uploaded models; None if the policy takes none."""
    noticed: bytes = b""
    """Digest of a policy that another service put in force, until this service has compared its own file."""

    def put_in_force(self, data: Sequence[Data]) -> None:
        """Open the accounts of a policy that was checked; calls under way end on the policy they began with."""
        self.accounts.replace(opened(data, self.ledger, self.work, self.scorer))

    def reload(self, listening: Server) -> None:
        """Put the file's current policy in force, or leave everything as it was."""
        noticed, self.noticed = self.noticed, b""
        try:
            new = read(self.path, self.listen)
            if noticed not in (b"", new.digest):
                LOG.error("%s: nothing new is answered: %s", self.path, IN_FORCE.format(noticed.hex()[:12]))
                return
            check_change(self.policy, new)
            credentials, revoked = credentials_of(new, self.deployed.revoked)
            data = load_all(new)
            agree(new, data, self.ledger)
        except (UserError, OSError) as error:
            LOG.error("SIGHUP: what was in force before stays so: %s", error)
            self.running.says(self.policy.digest, str(error))
            return
        self.put_in_force(data)
        self.deployed = replace(self.deployed, admitted=admitted(new), revoked=revoked)
        listening.admit(self.deployed)
        listening.show(credentials)
        self.policy = new
        self.running.says(new.digest)
        for each in data:
            LOG.info("SIGHUP: %s", each.policy.summary)

    def follow(self) -> None:
        """Start to notice, within a second, a policy that another service of this ledger puts in force."""
        if isinstance(self.policy.deployment.ledger, str):
            threading.Thread(target=self._follow, name="policy", daemon=True).start()

    def _follow(self) -> None:
        seen = self.policy.digest
        while True:
            time.sleep(_LOOK_SECONDS)
            with contextlib.suppress(LedgerUnavailable, LedgerError, OSError, toml.TomlError):
                holds = self.ledger.admitted() or self.policy.digest
                # This service's file may follow later.
                if holds != self.policy.digest and (
                    holds != seen or holds == hashlib.sha256(toml.content(self.path)).digest()
                ):
                    seen = self.noticed = holds
                    os.kill(os.getpid(), signal.SIGHUP)
                    while self.noticed:
                        time.sleep(_LOOK_SECONDS)


def begin(policy: Policies, credentials: identity.Credentials, deployed: Deployed, accounts: Accounts) -> Server:
    """Start the server at the policy's address, for the open accounts."""
    return server.serve(
        lambda grpc_server: register(grpc_server, policy, accounts), credentials, policy.deployment.listen, deployed
    )


def register(grpc_server: grpc.Server, policy: Policies, accounts: Accounts) -> None:
    """Add the services that a policy needs."""
    add_AuditServiceServicer_to_server(AuditService(accounts.audits), grpc_server)
    add_GroupServiceServicer_to_server(GroupService(accounts.groups), grpc_server)
    if policy.releases:
        add_ReleaseServiceServicer_to_server(ReleaseService(accounts.releases), grpc_server)


def credentials_of(policy: Policies, before: Revoked | None = None) -> tuple[identity.Credentials, Revoked]:
    """Return the service's credentials, and the revoked certificates."""
    credentials = identity.load(policy.deployment.credentials)
    expected = (policy.deployment.name, "compliance")
    if (credentials.run, credentials.party) != expected:
        raise identity.CredentialsError(
            f"{policy.deployment.credentials}: the certificate is for {credentials.party} of {credentials.run}, "
            f"not for compliance of {policy.deployment.name}"
        )
    return credentials, Revoked(policy.deployment.credentials / "revoked.pem", credentials.authority, before)


def admitted(policy: Policies) -> dict[identity.Caller, Quota]:
    """Return the admitted callers: the policy's developers, and compliance itself, for health checks."""
    run = policy.deployment.name
    developers = {identity.Caller(run, "developer", name): quota for name, quota in policy.quotas.items()}
    return {identity.Caller(run, "compliance"): Quota(), **developers}
