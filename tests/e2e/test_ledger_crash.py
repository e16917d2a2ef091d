"""Services that are killed in the middle of their work, and what their clients and their ledger remember of it.

This file is also the service: ``python test_ledger_crash.py FOLDER KIND`` answers audits on a local socket, and each
answer is 16 fresh random bytes, so that one which is computed twice is seen to be. The broken kinds show that the
checks find what they are for.
"""

from __future__ import annotations

import os
import random
import socket
import socketserver
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from compliance.ledger import Ledger
from compliance.ledger.accountant import Budget, Neighbours, pure
from compliance.ledger.entries import LedgerEntry, Reply, Request
from compliance.ledger.head import Seal, load_key
from compliance.ledger.place import Place, inspect
from fairwall.rpc.errors import Refusal
from tests.support import postgres_server

CLIENTS = 4
CHARGE = 0.25
LIMIT = 1e9


def begin(folder: Path, store: str) -> None:
    """Say, to all processes of a test, where the ledger is."""
    if store == "postgres":
        (folder / "url").write_text(postgres_server.shared().new_database())
    else:
        (folder / "ledger").mkdir()


def place_of(folder: Path) -> Place:
    url = folder / "url"
    return url.read_text() if url.exists() else folder / "ledger" / "ledger.sqlite"


def open_ledger(folder: Path) -> Ledger:
    ledger = Ledger(place_of(folder), Seal(folder / "head.json", load_key(folder / "key")))
    ledger.set_budget("people", Neighbours.A_FLIP, Budget(LIMIT))
    for client in range(CLIENTS):
        ledger.allocate("people", f"client{client}", LIMIT)
    return ledger


def settle(ledger: Ledger, developer: str, request_id: str) -> bytes:
    request = Request("people", developer, request_id, b"digest", "sp", "test", Neighbours.A_FLIP, pure(CHARGE))
    return ledger.settle(request, lambda _: Reply(os.urandom(16))).reply.answer


# The service, and three that are broken -------------------------------------------------------------------------------

Answerer = Callable[[str, str], bytes]


def sound(folder: Path) -> Answerer:
    ledger = open_ledger(folder)
    return lambda developer, request_id: settle(ledger, developer, request_id)


def replies_before_it_commits(folder: Path) -> Answerer:
    """Like `sound`, but the charges of eight answers are written together, once the eighth has left."""
    ledger, lock = open_ledger(folder), threading.Lock()
    answered: dict[tuple[str, str], bytes] = {}
    waiting: list[tuple[str, str]] = []

    def answer(developer: str, request_id: str) -> bytes:
        with lock:
            if (developer, request_id) not in answered:
                answered[developer, request_id] = os.urandom(16)
                waiting.append((developer, request_id))
            if len(waiting) == 8:
                for who, what in waiting:
                    given = Reply(answered[who, what])
                    request = Request("people", who, what, b"digest", "sp", "test", Neighbours.A_FLIP, pure(CHARGE))
                    ledger.settle(request, lambda _, given=given: given)  # type: ignore[misc]
                waiting.clear()
            return answered[developer, request_id]

    return answer


def resamples_on_retry(folder: Path) -> Answerer:
    """Like `sound`, but it charges first and computes for whoever comes, at each coming."""
    ledger = open_ledger(folder)

    def answer(developer: str, request_id: str) -> bytes:
        settle(ledger, developer, request_id)
        return os.urandom(16)

    return answer


def charges_every_attempt(folder: Path) -> Answerer:
    """Like `sound`, but what it remembers of a request, it remembers in memory; the ledger counts attempts."""
    ledger, lock = open_ledger(folder), threading.Lock()
    answered: dict[tuple[str, str], bytes] = {}

    def answer(developer: str, request_id: str) -> bytes:
        with lock:
            if (developer, request_id) not in answered:
                attempt = f"{request_id}#{os.urandom(8).hex()}"
                answered[developer, request_id] = settle(ledger, developer, attempt)
            return answered[developer, request_id]

    return answer


KINDS = {kind.__name__: kind for kind in (sound, replies_before_it_commits, resamples_on_retry, charges_every_attempt)}


def serve(folder: Path, kind: str) -> None:
    answer = KINDS[kind](folder)

    class Connection(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            for line in self.rfile:
                developer, request_id = line.decode().split()
                self.wfile.write(answer(developer, request_id).hex().encode() + b"\n")

    class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Connection) as server:
        print(server.server_address[1], flush=True)  # noqa: T201
        server.serve_forever()


# The clients, and who kills the service -------------------------------------------------------------------------------


@dataclass
class Client:
    """One developer: it asks on until the service dies, and after that for the same answer again.

    Parameters
    ----------
    name : str
    chance : random.Random
    answers : dict
        What it was told, by request id.
    faults : list
        Where it was told two things.
    asked : int
        How many requests it has sent, repeats not counted.
    """

    name: str
    chance: random.Random
    answers: dict[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    asked: int = 1

    def talk(self, port: int, heard: threading.Semaphore) -> None:
        with (
            suppress(OSError),
            socket.create_connection(("127.0.0.1", port), timeout=300) as connection,
            connection.makefile("rwb") as stream,
        ):
            while True:
                # Now and then an old question again; else the one that is still open.
                number = self.chance.randrange(1, self.asked + 1) if self.chance.random() < 0.2 else self.asked
                request_id = f"r{number}"
                stream.write(f"{self.name} {request_id}\n".encode())
                stream.flush()
                line = stream.readline().decode()
                if not line.endswith("\n"):
                    return
                self.hear(request_id, line.strip())
                heard.release()

    def hear(self, request_id: str, answer: str) -> None:
        if self.answers.setdefault(request_id, answer) != answer:
            self.faults.append(f"{self.name} was told two answers to {request_id}")
        if request_id == f"r{self.asked}":
            self.asked += 1


@contextmanager
def service(folder: Path, kind: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, __file__, str(folder), kind]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def round_of(folder: Path, kind: str, clients: list[Client], answers: int, seconds: float) -> None:
    """Start the service, and kill it with signal 9 a moment after it has given so many answers more.

    Answers, not seconds, measure its life: a slow machine dies as late in its work as a fast one.
    """
    heard = threading.Semaphore(0)
    with service(folder, kind) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        threads = [threading.Thread(target=client.talk, args=(port, heard)) for client in clients]
        for thread in threads:
            thread.start()
        for _ in range(answers):
            assert heard.acquire(timeout=300), "the service does not answer"
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        assert process.poll() is None, "the service died by itself"
        process.kill()
        for thread in threads:
            thread.join()


def faults_after(folder: Path, kind: str, kills: int, seed: int, store: str = "sqlite") -> list[str]:
    """Kill a service many times at random moments; then compare what the clients heard with what the ledger says."""
    begin(folder, store)
    chance = random.Random(seed)  # noqa: S311
    clients = [Client(f"client{i}", random.Random(seed + i)) for i in range(CLIENTS)]  # noqa: S311
    for kill in range(kills):
        if kill % 5 == 4:  # some die while they start, and recover what the one before left
            with service(folder, kind) as process, suppress(subprocess.TimeoutExpired):
                process.wait(chance.uniform(0.0, 0.5))
        round_of(folder, kind, clients, chance.randrange(40), chance.uniform(0.0, 0.005))
    faults = [fault for client in clients for fault in client.faults]

    (found,) = inspect(place_of(folder))
    faults += [found.fault] if found.fault else []
    entries = [record for record in found.records if isinstance(record, LedgerEntry)]
    stored = {(entry.request.developer, entry.request.request_id): entry.reply.answer.hex() for entry in entries}
    for client in clients:
        for request_id, answer in client.answers.items():
            if stored.get((client.name, request_id)) != answer:
                faults.append(f"{client.name} was told an answer to {request_id} that is not in the ledger")
    sent = {(client.name, f"r{number}") for client in clients for number in range(1, client.asked + 1)}
    charged = Counter((entry.request.developer, entry.request.request_id.partition("#")[0]) for entry in entries)
    faults += [f"{who} was charged {count} times for {what}" for (who, what), count in charged.items() if count > 1]
    faults += [f"{who} never asked {what}" for who, what in charged if (who, what) not in sent]
    if found.books.standing("people").spent != CHARGE * len(charged):
        faults.append("the charges are not the sum over the requests")
    return faults


STORES = pytest.mark.parametrize("store", ["sqlite", "postgres"])


@pytest.mark.check
@STORES
def test_a_service_killed_10_times_loses_no_charge_and_answers_nothing_twice(tmp_path: Path, store: str) -> None:
    assert faults_after(tmp_path, "sound", kills=10, seed=1, store=store) == []
    assert len(inspect(place_of(tmp_path))[0].records) > 100


@pytest.mark.slow(seconds=40)
@STORES
@pytest.mark.parametrize("seed", [2, 3])
def test_a_service_killed_60_times_loses_no_charge_and_answers_nothing_twice(
    tmp_path: Path, store: str, seed: int
) -> None:
    assert faults_after(tmp_path, "sound", kills=60, seed=seed, store=store) == []


@pytest.mark.check
@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        ("replies_before_it_commits", "not in the ledger"),
        ("resamples_on_retry", "told two answers"),
        ("charges_every_attempt", "was charged 2 times"),
    ],
)
def test_a_broken_service_is_found_out(tmp_path: Path, kind: str, fault: str) -> None:
    assert any(fault in found for found in faults_after(tmp_path, kind, kills=4, seed=3))


# Two services, two developers -----------------------------------------------------------------------------------------


def spend(folder: Path, developer: str) -> None:
    """Ask until nothing is left; the process that two developers' services are."""
    ledger = open_ledger(folder)
    print("ready", flush=True)  # noqa: T201
    sys.stdin.readline()
    answered = 0
    with suppress(Refusal):
        while True:
            settle(ledger, developer, str(answered))
            answered += 1
    print(answered)  # noqa: T201


@pytest.mark.few(1)
@STORES
def test_two_developers_at_two_services_together_never_exceed_the_data_sets_budget(tmp_path: Path, store: str) -> None:
    begin(tmp_path, store)
    developers = ("client0", "client1")
    services = [
        subprocess.Popen(
            [sys.executable, __file__, str(tmp_path), "spend", developer],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for developer in developers
    ]
    for process in services:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    ledger = open_ledger(tmp_path)
    ledger.set_budget("people", Neighbours.A_FLIP, Budget(100 * CHARGE))
    for developer in developers:
        ledger.allocate("people", developer, 80 * CHARGE)
    ledger.close()
    for process in services:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    answered = [int(process.communicate(timeout=300)[0]) for process in services]
    assert sum(answered) == 100
    assert max(answered) <= 80
    books = inspect(place_of(tmp_path))[0].books
    assert books.standing("people").spent == 100 * CHARGE
    assert [books.standing("people", developer).spent for developer in developers] == [n * CHARGE for n in answered]


if __name__ == "__main__":
    if sys.argv[2] == "spend":
        spend(Path(sys.argv[1]), sys.argv[3])
    else:
        serve(Path(sys.argv[1]), sys.argv[2])
