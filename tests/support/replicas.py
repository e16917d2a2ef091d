"""Two services of one PostgreSQL ledger, what goes wrong around them, and developers who ask on whatever happens."""

from __future__ import annotations

import random
import signal
import socket
import struct
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from fairwall.client import AuditClient, AuditRefused, AuditUnavailable
from tests.support import ledger_history, postgres_server
from tests.support.loans_deployment import CHARGE, PLENTY, Deployment, ask, free_port

DEVELOPERS = ("alice", "bob", "carol", "dave")
PROGRAMS = 2
"""Of each developer, which ask at the same time, and now and then under the same id."""

PATIENCE = 60.0
"""Seconds without an answer after which it is said that none will come."""

_READ_BYTES = 1 << 16


class Proxy:
    """Stands between services and their database server, and passes bytes on until it is told to drop a connection.

    Parameters
    ----------
    server : Path
        The folder with the server's socket; another one may be told at any time.
    """

    def __init__(self, server: Path) -> None:
        self.server = server
        self.dropped = 0
        self._chance = random.Random(0)  # noqa: S311
        self._lock = threading.Lock()
        self._open: list[tuple[socket.socket, socket.socket]] = []
        self._left: dict[str, list[int]] = {"server": [], "client": []}
        self._door = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._welcome, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._door.getsockname()[1])

    def drop(self, towards: str, after: int) -> None:
        """Break the connection whose bytes one way, counted over all connections, are so many from now on."""
        with self._lock:
            self._left[towards].append(after)

    def cut(self) -> None:
        """Break every connection."""
        with self._lock:
            for ends in self._open:
                self._break(ends)

    def close(self) -> None:
        with suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)  # wakes who waits in accept
        self._door.close()
        self.cut()

    def _welcome(self) -> None:
        while True:
            try:
                caller, _ = self._door.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(caller,), daemon=True).start()

    def _connect(self, caller: socket.socket) -> None:
        with caller, socket.socket(socket.AF_UNIX) as server, suppress(OSError):
            server.connect(f"{self.server}/.s.PGSQL.5432")
            caller.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ends = caller, server
            with self._lock:
                self._open.append(ends)
            back = threading.Thread(target=self._carry, args=(server, caller, "client", ends), daemon=True)
            back.start()
            self._carry(caller, server, "server", ends)
            back.join()
            with self._lock:
                self._open.remove(ends)

    def _carry(
        self, source: socket.socket, sink: socket.socket, towards: str, ends: tuple[socket.socket, socket.socket]
    ) -> None:
        """Pass on what comes one way, until it ends; then the other way ends too."""
        with suppress(OSError):
            while data := source.recv(_READ_BYTES):
                passed = self._passed(len(data), towards)
                sink.sendall(data[:passed])
                if passed < len(data):
                    break
        with self._lock:
            self._break(ends)

    def _passed(self, size: int, towards: str) -> int:
        """Count bytes; how many of them pass before a connection breaks."""
        with self._lock:
            left = self._left[towards] = [each - size for each in self._left[towards]]
            due = [each + size for each in left if each < 0]
            self._left[towards] = [each for each in left if each >= 0]
            self.dropped += len(due)
        return min(due, default=size)

    def _break(self, ends: tuple[socket.socket, socket.socket]) -> None:
        """End a connection: for the service by a reset or by an end, as it happens."""
        with suppress(OSError):
            if self._chance.random() < 0.5:
                ends[0].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


class Stuck(Exception):
    """Nobody was answered for so long, or no service starts: with what the services said last."""


@dataclass
class Replicas:
    """Two services, the database server behind a proxy, and all that was asked and heard.

    Parameters
    ----------
    deployment : Deployment
        Whose services these are.
    servers : list of postgres.Server
        The one that is used, and then its standbys.
    proxy : Proxy
    seed : int
        Of all that happens by chance.
    patience : float
        As of `PATIENCE`.
    """

    deployment: Deployment
    servers: list[postgres_server.Server]
    proxy: Proxy
    seed: int
    patience: float = PATIENCE
    calls: list[ledger_history.Call] = field(default_factory=list)
    happened: Counter[str] = field(default_factory=Counter)
    count: int = 0
    """How many faults have happened."""
    exhausted: int | None = None
    """How many had when a budget first ran out."""
    _running: dict[str, tuple[subprocess.Popen[str], ExitStack]] = field(default_factory=dict)
    _asked: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in DEVELOPERS})
    _heard: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    _over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)  # noqa: S311
        self.addresses = (self.deployment.address, f"127.0.0.1:{free_port()}")

    @property
    def server(self) -> postgres_server.Server:
        return self.servers[0]

    # Services ---------------------------------------------------------------------------------------------------------

    def start(self, address: str, tries: int = 6) -> None:
        """Start a service, again if a fault ends its start; Stuck if it never listens."""
        for _ in range(tries):
            opened = ExitStack()
            process = opened.enter_context(self.deployment.started("--listen", address))
            assert process.stdout is not None
            if process.stdout.readline():
                self._running[address] = process, opened
                return
            opened.close()
        raise Stuck(f"seed {self.seed}: no service starts: {self.deployment.log[-500:]}")

    def kill(self, address: str) -> None:
        process, opened = self._running.pop(address)
        ended = process.poll()
        opened.close()  # by signal 9
        assert ended is None, f"seed {self.seed}: it ended by itself: {self.deployment.log[-500:]}"

    def close(self) -> None:
        self._over.set()
        for address in tuple(self._running):
            self._running.pop(address)[1].close()

    # Developers -------------------------------------------------------------------------------------------------------

    def ask(self, audits: AuditClient, developer: str, request_id: str) -> ledger_history.Call:
        """Ask once, and write down what was heard."""
        began = time.monotonic()
        answer, refusal = None, ""
        try:
            answer = ask(audits, request_id)
        except AuditRefused as refused:
            refusal = refused.reason
        except AuditUnavailable:
            pass
        call = ledger_history.Call(
            developer, request_id, "loans", CHARGE, began, time.monotonic(), answer=answer, refusal=refusal
        )
        self.calls.append(call)
        if refusal == "BUDGET_EXHAUSTED" and self.exhausted is None:
            self.exhausted = self.count
        if answer is not None or refusal == "BUDGET_EXHAUSTED":
            self._heard.release()
        return call

    def _program(self, developer: str, number: int, least: int) -> None:
        """Ask new things and old ones, answered or not, so often at least, and until it is over."""
        chance = random.Random(f"{self.seed} {developer} {number}")  # noqa: S311
        asked, count = self._asked[developer], 0
        while count < least or not self._over.is_set():
            with self.deployment.client(developer, self.addresses) as audits:
                for _ in range(chance.randrange(1, 60)):
                    count += 1
                    if not asked or chance.random() < 0.65:
                        asked.append(f"{number} {count}")
                        request_id = asked[-1]
                    else:  # the newest as likely as all others: the other program may be at it, or nobody was told
                        request_id = asked[-1] if chance.random() < 0.5 else chance.choice(asked)
                    call = self.ask(audits, developer, request_id)
                    while (
                        call.answer is None and call.refusal in ledger_history.MAY_BE_CHARGED and chance.random() < 0.6
                    ):
                        time.sleep(chance.uniform(0.0, 0.1))
                        call = self.ask(audits, developer, request_id)
                    if self._over.is_set() and count >= least:
                        return

    # Faults -----------------------------------------------------------------------------------------------------------

    def kill_one(self) -> None:
        address = self.chance.choice(self.addresses)
        self.kill(address)
        time.sleep(self.chance.uniform(0.0, 0.3))
        self.start(address)

    def kill_both(self) -> None:
        for address in self.addresses:
            self.kill(address)
        for address in self.addresses:
            self.start(address)

    def kill_one_while_it_starts(self) -> None:
        address = self.chance.choice(self.addresses)
        self.kill(address)
        with self.deployment.started("--listen", address) as process, suppress(subprocess.TimeoutExpired):
            process.wait(self.chance.uniform(0.5, 2.0))
        self.start(address)

    def restart_server(self) -> None:
        self.server.stop()  # immediate
        time.sleep(self.chance.uniform(0.0, 0.3))
        self.server.start()

    def restart_all(self) -> None:
        """All at once, as where they are on one machine whose power fails."""
        self.server.stop()
        for address in self.addresses:
            self.kill(address)
        self.server.start()
        for address in self.addresses:
            self.start(address)

    def cut(self) -> None:
        self.proxy.cut()

    def drop(self) -> None:
        """Break one connection to three at random bytes: in what is said, or in what is answered."""
        for _ in range(self.chance.randrange(1, 4)):
            self.proxy.drop(self.chance.choice(("server", "client")), self.chance.randrange(8000))

    def pause(self, cut: bool = False) -> None:
        process, _ = self._running[self.chance.choice(self.addresses)]
        process.send_signal(signal.SIGSTOP)
        try:
            if cut:  # it holds a chain, as it thinks, that another service goes on with
                self.proxy.cut()
            time.sleep(self.chance.uniform(0.05, 0.8))
        finally:
            process.send_signal(signal.SIGCONT)

    def pause_and_cut(self) -> None:
        self.pause(cut=True)

    def standby(self) -> postgres_server.Server:
        """Start a standby that follows, and has what is committed so far."""
        standby = self.server.standby()
        self.servers.append(standby)
        standby.start()
        standby.wait_for(self.server)
        return standby

    def lead_to(self, server: postgres_server.Server) -> None:
        """Have services find another server at the address of the one before."""
        self.proxy.server = server.folder
        self.proxy.cut()

    def fail_over(self) -> None:
        """Lose the server; its standby, which may not have all that was answered, is to take its place.

        If it has not, nobody is answered anything, and the old server comes back.
        """
        standby = self.standby()
        self._hear(self.chance.randrange(4))
        if self.chance.random() < 0.5:  # it was not heard of for a while
            standby.stop(signal.SIGINT)
            self._hear(self.chance.randrange(4))
        self.server.stop()
        standby.promote()
        began = time.monotonic()
        self.lead_to(standby)
        if self._lags(standby, began):
            time.sleep(0.5)
            answered = [call.who for call in self.calls if call.answer is not None and call.began > began]
            assert answered == [], f"seed {self.seed}: answered from an old copy"
            self.server.start()
            self.lead_to(self.server)
            self.happened["of these, the standby lagged"] += 1
        else:
            self.servers.reverse()
        postgres_server.remove(self.servers.pop())

    def _lags(self, standby: postgres_server.Server, began: float) -> bool:
        """Whether a server lacks what was charged: it does not once a call that began since was answered.

        What was charged before its server went may be sealed a second after that, on a busy machine.
        """
        while True:
            heads, kept = self.kept(standby).heads, self.kept(standby)  # heads first: charges go on
            if any(head.chain not in [record.chain for record in kept.of(line)] for line, head in heads.items()):
                return True
            if any(call.answer is not None and call.began > began for call in self.calls):
                return False
            if time.monotonic() > began + self.patience:
                raise Stuck(f"seed {self.seed}: nobody is answered: {self.deployment.log[-500:]}")
            time.sleep(0.1)

    # A run ------------------------------------------------------------------------------------------------------------

    def run(self, faults: int, requests: int, kinds: Mapping[str, int] | None = None) -> None:
        """Have so many faults happen while developers ask so many times or more; Stuck if that ends before."""
        weights = WEIGHTS if kinds is None else kinds
        self._over.clear()
        programs = [(developer, number) for developer in DEVELOPERS for number in range(PROGRAMS)]
        with ThreadPoolExecutor(len(programs)) as threads:
            running = [threads.submit(self._program, *each, requests // len(programs)) for each in programs]
            try:
                self._have_happen(self.chance.choices(list(weights), list(weights.values()), k=faults))
            finally:
                self._over.set()
            for program in running:
                program.result(600)

    def _have_happen(self, kinds: Sequence[str]) -> None:
        for kind in kinds:
            self._hear(self.chance.randrange(12))
            time.sleep(self.chance.uniform(0.0, 0.05))
            getattr(self, kind)()
            self.happened[kind] += 1
            self.count += 1
        self._hear(1)

    def _hear(self, answers: int) -> None:
        """Wait for so many answers: they, not seconds, say how far a run is."""
        while self._heard.acquire(blocking=False):
            pass
        for _ in range(answers):
            if not self._heard.acquire(timeout=self.patience):
                raise Stuck(f"seed {self.seed}: nobody is answered: {self.deployment.log[-500:]}")

    def ask_again(self, most: int) -> None:
        """Ask for things that were asked before, at each service alone, and twice."""
        for developer in DEVELOPERS:
            again = self.chance.sample(self._asked[developer], min(most, len(self._asked[developer])))
            for address in self.addresses:
                with self.deployment.client(developer, address) as audits:
                    for request_id in again:
                        self.ask(audits, developer, request_id)

    def spend(self) -> None:
        """Ask for new things until nobody has any budget left."""
        for developer in DEVELOPERS:
            with self.deployment.client(developer, self.addresses) as audits:
                refusal = ""
                while refusal != "BUDGET_EXHAUSTED":
                    self._asked[developer].append(f"more {len(self._asked[developer])}")
                    refusal = self.ask(audits, developer, self._asked[developer][-1]).refusal

    def kept(self, server: postgres_server.Server | None = None) -> ledger_history.Kept:
        return ledger_history.read((server or self.server).url(), self.deployment.folder / "seal" / "head", self._key)

    def faults(self, server: postgres_server.Server | None = None) -> list[ledger_history.Fault]:
        """Judge all that was asked and heard by what the database holds now."""
        return ledger_history.faults(self.calls, self.kept(server), bytes.fromhex(self._key.read_text()))

    def figures(self) -> dict[str, object]:
        answered = [call for call in self.calls if call.answer is not None]
        return {
            "calls": len(self.calls),
            "answers": len(answered),
            "repeats": len(answered) - len({call.who for call in answered}),
            "ids": sum(map(len, self._asked.values())),
            "charged": len(self.kept().charges),
            "refusals": dict(Counter(call.refusal or "nothing heard" for call in self.calls if call.answer is None)),
            "faults": dict(sorted(self.happened.items())),
            "faults before a budget ran out": self.exhausted,
            "connections dropped at a byte": self.proxy.dropped,
        }

    @property
    def _key(self) -> Path:
        return self.deployment.folder / "certificates" / "compliance" / "seal.key"


WEIGHTS = {
    "kill_one": 4,
    "kill_both": 1,
    "kill_one_while_it_starts": 1,
    "restart_server": 3,
    "restart_all": 1,
    "cut": 4,
    "drop": 6,
    "pause": 2,
    "pause_and_cut": 3,
    "fail_over": 2,
}
"""How often which fault is drawn, by the method that has it happen."""


@contextmanager
def replicas(
    folder: Path, seed: int, budget: float = PLENTY, service: Sequence[str] = (), patience: float = PATIENCE
) -> Iterator[Replicas]:
    """Start a server, and two services of its ledger; dave may spend an eighth of the budget, if it is not plenty."""
    servers = [postgres_server.begin()]
    proxy = Proxy(servers[0].folder)
    try:
        url = f"postgresql://fairwall@127.0.0.1:{proxy.port}/postgres?sslmode=disable"
        deployment = Deployment(folder, url, developers=DEVELOPERS)
        deployment.set_budget(budget, dave=budget / 8)
        deployment.service = tuple(service) or deployment.service
        both = Replicas(deployment, servers, proxy, seed, patience)
        try:
            for address in both.addresses:
                both.start(address)
            yield both
        finally:
            both.close()
    finally:
        proxy.close()
        for server in servers:
            postgres_server.remove(server)
