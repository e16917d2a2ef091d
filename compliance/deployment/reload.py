"""What a deployment serves while it runs, and how another policy comes into force: all of it, or nothing."""

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
from compliance.answers.release_service import ReleaseService
from compliance.answers.sealed import Scorer
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
from fairwall.rpc.quota import Quota
from fairwall.rpc.revoked import Revoked
from fairwall.rpc.server import Deployed, Server

if TYPE_CHECKING:
    import grpc

LOG = logging.getLogger(__name__)

_LOOK_SECONDS = 0.3
"""How often a service looks whether another one has put a policy in force."""


@dataclass
class Service:
    """A deployment that is served.

    Parameters
    ----------
    path : the policy's file.
    listen : where it listens, if not where the file says.
    policy : the one that is in force.
    running : tells commands which policy that is.
    deployed : who may call, and whether the service is ready.
    accounts : what is open.
    work : what finds out, behind the answers, what they are worth.
    """

    path: Path
    listen: str | None
    policy: Policies
    ledger: Ledger
    running: Running
    deployed: Deployed
    accounts: Accounts = field(default_factory=Accounts)
    work: Executor = field(default_factory=lambda: ThreadPoolExecutor(1, "worth"))
    scorer: Scorer | None = None
    """Scores with the models that developers hand over; None where the policy takes none."""
    noticed: bytes = b""
    """The digest of a policy that another service has put in force, until this one has looked whether it has it too."""

    def put_in_force(self, data: Sequence[Data]) -> None:
        """Open what a policy serves: nothing of it can be refused; calls under way end by what they began with."""
        self.accounts.replace(opened(data, self.ledger, self.work, self.scorer))

    def reload(self, listening: Server) -> None:
        """Put the policy in force as it is in its file now, or leave all as it was."""
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
        """Notice from now on, within a second, what policy another service of this ledger puts in force."""
        if isinstance(self.policy.deployment.ledger, str):
            threading.Thread(target=self._follow, name="policy", daemon=True).start()

    def _follow(self) -> None:
        seen = self.policy.digest
        while True:
            time.sleep(_LOOK_SECONDS)
            with contextlib.suppress(LedgerUnavailable, LedgerError, OSError, toml.TomlError):
                holds = self.ledger.admitted() or self.policy.digest
                # Its file may follow later.
                if holds != self.policy.digest and (
                    holds != seen or holds == hashlib.sha256(toml.content(self.path)).digest()
                ):
                    seen = self.noticed = holds
                    os.kill(os.getpid(), signal.SIGHUP)
                    while self.noticed:
                        time.sleep(_LOOK_SECONDS)


def begin(policy: Policies, credentials: identity.Credentials, deployed: Deployed, accounts: Accounts) -> Server:
    """Listen where a policy says, and answer about whatever is open."""
    return server.serve(
        lambda grpc_server: register(grpc_server, policy, accounts), credentials, policy.deployment.listen, deployed
    )


def register(grpc_server: grpc.Server, policy: Policies, accounts: Accounts) -> None:
    """Add the services that answer by a policy."""
    add_AuditServiceServicer_to_server(AuditService(accounts.audits), grpc_server)
    add_GroupServiceServicer_to_server(GroupService(accounts.groups), grpc_server)
    if policy.releases:
        add_ReleaseServiceServicer_to_server(ReleaseService(accounts.releases), grpc_server)


def credentials_of(policy: Policies, before: Revoked | None = None) -> tuple[identity.Credentials, Revoked]:
    """Read what the service proves itself with, and whose certificates hold no longer."""
    credentials = identity.load(policy.deployment.credentials)
    expected = (policy.deployment.name, "compliance")
    if (credentials.run, credentials.party) != expected:
        raise identity.CredentialsError(
            f"{policy.deployment.credentials}: the certificate is for {credentials.party} of {credentials.run}, "
            f"not for compliance of {policy.deployment.name}"
        )
    return credentials, Revoked(policy.deployment.credentials / "revoked.pem", credentials.authority, before)


def admitted(policy: Policies) -> dict[identity.Caller, Quota]:
    """List the policy's developers, and compliance itself, which may ask whether its server is well."""
    run = policy.deployment.name
    developers = {identity.Caller(run, "developer", name): quota for name, quota in policy.quotas.items()}
    return {identity.Caller(run, "compliance"): Quota(), **developers}
