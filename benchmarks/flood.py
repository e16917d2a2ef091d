"""How long an honest developer waits for an answer while somebody else floods a deployed service.

    python benchmarks/flood.py [--calls 60] [--connections 1500] [--rounds 3]

A real service process with a ledger on disk. Bob asks about 40 models of 1,000 people, a new query each time, one after
the other: alone, and beside each flood, in the same rounds. Floods come from a process of the lowest priority, as if
from another machine:

* silent calls: 40 calls of `GetTerms` and 40 of health that send no message, by carol, whom the policy does not name,
  and as many by alice, whom it does;
* bare connections: so many that shake hands with carol's certificate and then say nothing;
* a developer: alice sends new queries, eight at a time, as fast as they are answered;
* a developer of many calls: alice asks for the terms, eight at a time;
* a stranger of many calls: carol does, and is refused each time.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import socket
import ssl
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from multiprocessing.synchronize import Event
from pathlib import Path

import grpc
import numpy as np
from bench_deployment import lay_out, serving
from short import parsed

from fairwall.client import AuditClient, AuditRefused, AuditUnavailable
from fairwall.rpc import channel, identity

PEOPLE, MODELS, EPSILON = 1000, 40, 1.0
DEVELOPERS = {"alice": "calls_a_day = 100000000\nbytes_a_day = 1000000000000\n", "bob": ""}
SILENT = ("/fairwall.compliance.v1.AuditService/GetTerms", "/grpc.health.v1.Health/Check")

Flood = Callable[[Path, str, Event, Event], None]


def silent_calls(folder: Path, address: str, begun: Event, over: Event) -> None:
    """Make calls that send no message, again and again as they are refused."""

    def nothing() -> Iterator[bytes]:
        over.wait()
        yield from ()

    def hold(name: str, method: str) -> None:
        own = identity.load(folder / "certificates" / f"developer-{name}")
        with channel.connect(address, "compliance", own) as connection:
            silent: grpc.StreamUnaryMultiCallable[bytes, bytes] = connection.stream_unary(method)
            while not over.is_set():
                calls = [silent.future(nothing(), timeout=60) for _ in range(40)]
                begun.set()
                over.wait(2.0)
                for each in calls:
                    each.cancel()

    together([partial(hold, name, method) for name in ("alice", "carol") for method in SILENT])


def bare_connections(folder: Path, address: str, begun: Event, over: Event) -> None:
    """Shake hands, and say nothing; what the service closes is opened again."""
    count = int(os.environ["CONNECTIONS"])
    own = folder / "certificates" / "developer-carol"
    context = ssl.create_default_context(cafile=own / "authority.pem")
    context.load_cert_chain(own / "certificate.pem", own / "key.pem")
    context.set_alpn_protocols(["h2"])
    host, port = address.rsplit(":", 1)
    held: list[ssl.SSLSocket] = []
    while not over.is_set():
        while len(held) < count and not over.is_set():
            with suppress(OSError):
                plain = socket.create_connection((host, int(port)), timeout=5)
                held.append(context.wrap_socket(plain, server_hostname="compliance.bench.fairwall"))
        begun.set()
        over.wait(1.0)
        for connection in held:
            connection.setblocking(False)
        held = [connection for connection in held if not is_closed(connection)]


def is_closed(connection: ssl.SSLSocket) -> bool:
    """Say whether the service has hung up."""
    try:
        while connection.recv(4096):
            pass
    except (ssl.SSLWantReadError, BlockingIOError):
        return False
    except OSError:
        pass
    return True


def many_queries(folder: Path, address: str, begun: Event, over: Event) -> None:
    """Be a developer that asks as much as it can."""
    batch = np.random.default_rng(1).random((MODELS, PEOPLE))

    def ask() -> None:
        with AuditClient(address, folder / "certificates" / "developer-alice") as audits:
            while not over.is_set():
                with suppress(AuditRefused, AuditUnavailable):
                    audits.ask(batch, "sp", 0.01)
                begun.set()

    together([ask] * 8)


def many_calls(folder: Path, address: str, begun: Event, over: Event, name: str) -> None:
    """Make as many calls as one can."""

    def ask() -> None:
        with AuditClient(address, folder / "certificates" / f"developer-{name}") as audits:
            while not over.is_set():
                with suppress(AuditRefused, AuditUnavailable):
                    audits.terms()
                begun.set()

    together([ask] * 8)


FLOODS: dict[str, Flood] = {
    "silent calls": silent_calls,
    "bare connections": bare_connections,
    "a developer's queries": many_queries,
    "a developer's calls": partial(many_calls, name="alice"),
    "a stranger's calls": partial(many_calls, name="carol"),
}


def together(calls: list[Callable[[], None]]) -> None:
    """Run them at the same time, until all are done."""
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def flood_by(name: str, folder: Path, address: str, begun: Event, over: Event) -> None:
    """Flood, in a process of its own."""
    os.nice(19)
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    FLOODS[name](folder, address, begun, over)


@contextmanager
def flooding(name: str, folder: Path, address: str) -> Iterator[None]:
    """Have a service flooded, from when the flood has begun."""
    spawn = multiprocessing.get_context("spawn")
    begun, over = spawn.Event(), spawn.Event()
    process = spawn.Process(target=flood_by, args=(name, folder, address, begun, over), daemon=True)
    process.start()
    try:
        begun.wait(120)
        time.sleep(1.0)
        yield
    finally:
        over.set()
        process.join(20)
        process.kill()


def waits(folder: Path, address: str, calls: int) -> list[float]:
    """Ask one query after the other; how long each took, in milliseconds."""
    batch = np.random.default_rng(0).random((MODELS, PEOPLE))
    took = []
    with AuditClient(address, folder / "certificates" / "developer-bob") as audits:
        audits.terms()
        for _ in range(calls):
            began = time.perf_counter()
            audits.ask(batch, "sp", EPSILON)
            took.append(1000 * (time.perf_counter() - began))
    return took


def main() -> None:
    """Print the medians over all rounds, and how many times the unloaded ones they are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=60)
    parser.add_argument("--connections", type=int, default=1500)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parsed(parser, calls=4, connections=20, rounds=1)
    os.environ["CONNECTIONS"] = str(asked.connections)
    took: dict[str, list[float]] = {"alone": [], **{name: [] for name in FLOODS}}
    with tempfile.TemporaryDirectory() as name, ExitStack() as running:
        folder = Path(name)
        lay_out(folder, PEOPLE, "laplace", 100, DEVELOPERS, strangers=["carol"])
        address = running.enter_context(serving(folder))
        waits(folder, address, 5)
        for number in range(asked.rounds):
            print(f"round {number + 1} of {asked.rounds}", file=sys.stderr)
            for flood in FLOODS:
                took["alone"] += waits(folder, address, asked.calls // 4)
                with flooding(flood, folder, address):
                    took[flood] += waits(folder, address, asked.calls)
    alone = statistics.median(took["alone"])
    for flood, times in took.items():
        times.sort()
        median, late = statistics.median(times), times[int(0.95 * len(times))]
        print(
            f"{flood:24} median {median:7.1f} ms   95th percentile {late:7.1f} ms   {median / alone:5.2f} times alone"
        )


if __name__ == "__main__":
    main()
