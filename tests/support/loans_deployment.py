"""A deployment called loans: the folder that its service is started from, its clients, and what its ledger says."""

from __future__ import annotations

import json
import random
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from compliance.ledger import Ledger
from compliance.ledger.accountant import Loss
from compliance.ledger.entries import LOST, LedgerEntry, Reply, Request
from compliance.ledger.place import inspect
from fairwall.client import AuditClient
from fairwall.rpc import channel, identity
from sim.deployment.certificates import write
from tests.support import forked_programs

PEOPLE = 60
CHARGE = 2.0**-10  # adds up without rounding
PLENTY = 2.0**20
DEVELOPERS = ("alice", "bob")
PREDICTIONS = np.linspace(0, 1, PEOPLE)

_POLICY = """
[deployment]
name = "loans"
listen = "{address}"
credentials = "certificates/compliance"
ledger = "{ledger}"
seal = "{seal}"
[data]
source = "people.csv"
protected = "group"
advantaged = "a"
label = "repaid"
positive = "1"
minimum_group = 5
[audit]
metrics = ["sp"]
mechanism = "laplace"
queries_max = 1
epsilon_min = 1e-6
[budget]
epsilon = {epsilon}
[developers]
{shares}
"""


class Deployment:
    """The service of a folder, which is started again and again at one address.

    Parameters
    ----------
    folder : Path
        Empty, or with folders that are to hold the ledger or the sealed head.
    ledger, seal : str
        Where these are kept, as the policy says it.
    developers : sequence of str
        Who has a certificate, and may ask.

    Attributes
    ----------
    address : str
    environment : mapping, optional
        What the service is started with, in place of the test's own.
    service : tuple of str
        What Python is to run as the service.
    popen : type
        What starts it; forked, it has no lines about failed handshakes in its log.
    """

    def __init__(
        self,
        folder: Path,
        ledger: str = "ledger/ledger.sqlite",
        seal: str = "seal/head",
        developers: Sequence[str] = DEVELOPERS,
    ) -> None:
        self.folder = folder
        self.developers = developers
        self._kept = {"ledger": ledger, "seal": seal}
        self.address = f"127.0.0.1:{free_port()}"
        self.environment: Mapping[str, str] | None = None
        self.service: tuple[str, ...] = ("-I", "-m", "compliance")
        self.popen: type[subprocess.Popen[str]] = forked_programs.Popen
        write(folder / "certificates", "loans", developers, 1)
        rows = [f"{'ab'[i % 2]},{i // 2 % 2}" for i in range(PEOPLE)]
        (folder / "people.csv").write_text("\n".join(["group,repaid", *rows]) + "\n")
        (folder / "people.csv").chmod(0o600)
        self.set_budget(PLENTY)

    @property
    def log(self) -> str:
        """What the service has written, of all its starts."""
        return (self.folder / "log").read_text()

    def set_budget(self, epsilon: float, **own: float) -> None:
        """Set the whole of it, and for each developer alone the same or its own; it holds from the next start on."""
        shares = "\n".join(f"{name}.epsilon = {own.get(name, epsilon)}" for name in self.developers)
        policy = _POLICY.format(address=self.address, epsilon=epsilon, shares=shares, **self._kept)
        (self.folder / "policy.toml").write_text(policy)

    def client(self, developer: str, address: str | Sequence[str] = "") -> AuditClient:
        """Be a developer, who finds the service at its address, or behind another one or several."""
        return AuditClient(address or self.address, self.folder / "certificates" / f"developer-{developer}")

    def entries(self) -> dict[tuple[str, str], LedgerEntry]:
        """What was charged, by developer and request id: the chain is whole, no id stands twice, the sum is right."""
        kept = self._kept["ledger"]
        (found,) = inspect(kept if "://" in kept else self.folder / kept)
        assert found.fault == ""
        charged = [record for record in found.records if isinstance(record, LedgerEntry)]
        entries = {(entry.request.developer, entry.request.request_id): entry for entry in charged}
        assert len(entries) == len(charged)
        assert {entry.request.loss.epsilon for entry in charged} <= {CHARGE}
        assert found.books.standing("loans").spent == CHARGE * len(entries)
        return entries

    @contextmanager
    def started(self, *options: str, policy: str = "policy.toml") -> Iterator[subprocess.Popen[str]]:
        """Start the service, which may not listen yet; it ends by signal 9."""
        command = [sys.executable, *self.service, "--even-if-worthless", "--policy", str(self.folder / policy)]
        command += options
        with (
            (self.folder / "log").open("a") as log,
            self.popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=self.environment) as process,
        ):
            try:
                yield process
            finally:
                process.kill()

    @contextmanager
    def served(self, *options: str, policy: str = "policy.toml") -> Iterator[subprocess.Popen[str]]:
        """Start the service, and wait until it listens."""
        with self.started(*options, policy=policy) as process:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, self.log[-500:]
            assert json.loads(line)["address"] == (options[-1] if "--listen" in options else self.address)
            yield process


def ask(audits: AuditClient, request_id: str) -> bytes:
    """Ask the one question, and give the answer's bytes."""
    answer = audits.ask(PREDICTIONS, "sp", CHARGE, request_id=request_id)
    assert answer.epsilon_charged == CHARGE
    return answer.gaps.tobytes()


def is_ready(deployment: Deployment, address: str = "") -> bool:
    """Ask for the service's health, or for that of another one at an address."""
    own = identity.load(deployment.folder / "certificates" / "developer-bob")
    with channel.connect(address or deployment.address, "compliance", own) as connection:
        answer = HealthStub(connection).Check(HealthCheckRequest(), timeout=20)
    return bool(answer.status == HealthCheckResponse.SERVING)


def free_port() -> int:
    """Find one below those that the system gives away by itself: nobody takes it while the service is down."""
    for port in random.Random().sample(range(20_000, 32_000), 100):  # noqa: S311
        with suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no free port")


def write_off(ledger: Ledger, dataset: str, loss: Loss) -> None:
    """Charge what was lost with an older copy of a ledger, as `restore` does."""
    with ledger._held(dataset) as held:
        asked = Request(dataset, LOST, "lost", b"", LOST, LOST, held.books.neighbours[dataset], loss)
        ledger._charge(held, asked, Reply(b""))
    ledger._seal_head(dataset)
