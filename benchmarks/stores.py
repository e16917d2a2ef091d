"""New queries a second of services whose ledger is a file or a database, and what one charge keeps others from.

    python benchmarks/stores.py [--answers 200] [--rounds 7]

Real services and real clients on this machine, PostgreSQL's server too, with its files and the ledger's on one disk. In
each round, in turn:

* one service on a SQLite file, one client that asks one new query (40 models about 1,000 people) after the other;
* the same on a PostgreSQL ledger;
* four developers at once at one service on each, and at two services on the database.

Printed are medians over the rounds, and of the same rounds the ratios. Last, what share of one developer's charge on a
database is spent holding locks that keep developers from other data sets (none: each data set has its own), and from
the same one: from the moment that a transaction has its chain to the end of its commit.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
from bench_deployment import lay_out, serving
from short import parsed

sys.path.insert(0, str(Path(__file__).parents[1]))

from compliance.ledger import Ledger
from compliance.ledger.accountant import Budget, Neighbours, pure
from compliance.ledger.entries import Reply, Request
from compliance.ledger.head import Seal
from compliance.ledger.postgres import PostgresStore
from fairwall.client import AuditClient
from tests.support import postgres_server

PEOPLE, MODELS, EPSILON = 1000, 40, 1.0
DEVELOPERS = ("alice", "bob", "carol", "dan")


def rate(folder: Path, addresses: list[str], developers: tuple[str, ...], answers: int) -> float:
    """Ask so many new queries in all, each developer its part of them, and return how many were answered a second."""
    batch = np.random.default_rng(0).random((MODELS, PEOPLE))
    with ExitStack() as open_, ThreadPoolExecutor(len(developers)) as threads:
        clients = [
            open_.enter_context(
                AuditClient(addresses[i % len(addresses)], folder / "certificates" / f"developer-{name}")
            )
            for i, name in enumerate(developers)
        ]
        for client in clients:
            client.terms()
        each = answers // len(developers)
        began = time.perf_counter()

        def ask(client: AuditClient) -> None:
            for _ in range(each):
                client.ask(batch, "sp", EPSILON)

        list(threads.map(ask, clients))
        return each * len(developers) / (time.perf_counter() - began)


def held(url: str, folder: Path, answers: int) -> tuple[float, float]:
    """Charge by the library alone; seconds a charge, and of these how long its chain was held."""
    ledger = Ledger(url, Seal(folder / "library-head", bytes(32)))
    ledger.set_budget("library", Neighbours.A_FLIP, Budget(1e9))
    ledger.allocate("library", "alice", 1e9)
    spent, begins = [0.0], threading.local()
    session = PostgresStore.session

    @contextmanager
    def timed(self: PostgresStore, chain: str | None) -> Iterator[object]:
        with session(self, chain) as own:
            begins.at = time.perf_counter()
            yield own
        spent[0] += time.perf_counter() - begins.at

    PostgresStore.session = timed  # type: ignore[assignment, method-assign]
    try:
        began = time.perf_counter()
        for number in range(answers):
            asked = Request("library", "alice", str(number), b"d", "sp", "counts", Neighbours.A_FLIP, pure(EPSILON))
            ledger.settle(asked, lambda _: Reply(bytes(1000)))
        took = time.perf_counter() - began
    finally:
        PostgresStore.session = session  # type: ignore[method-assign]
        ledger.close()
    return took / answers, spent[0] / answers


def main() -> None:
    """Print the medians, and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=200, help="in a round, of each kind")
    parser.add_argument("--rounds", type=int, default=7)
    asked = parsed(parser, answers=8, rounds=1)
    if postgres_server.programs() is None:
        print("PostgreSQL is not installed: nothing is measured")
        return
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name, ExitStack() as running:
        server = postgres_server.begin()
        running.callback(postgres_server.remove, server)
        folders = {store: Path(name) / store for store in ("file", "database")}
        for store, folder in folders.items():
            folder.mkdir()
            lay_out(folder, PEOPLE, "counts", 4096, dict.fromkeys(DEVELOPERS, ""))
            policy = folder / "policy.toml"
            if store == "database":
                policy.write_text(policy.read_text().replace("ledger/ledger.sqlite", server.new_database()))
        one = {store: running.enter_context(serving(folder)) for store, folder in folders.items()}
        second = running.enter_context(serving(folders["database"]))
        kinds = {
            "one developer, a file": ("file", [one["file"]], DEVELOPERS[:1]),
            "one developer, a database": ("database", [one["database"]], DEVELOPERS[:1]),
            "four developers, a file": ("file", [one["file"]], DEVELOPERS),
            "four developers, a database": ("database", [one["database"]], DEVELOPERS),
            "four developers, two services": ("database", [one["database"], second], DEVELOPERS),
        }
        for number in range(asked.rounds + 1):
            for kind in list(kinds)[:: 1 if number % 2 else -1]:
                store, addresses, developers = kinds[kind]
                told = rate(folders[store], addresses, developers, asked.answers if number else len(developers))
                if number:  # the first is for what is imported late
                    found.setdefault(kind, []).append(told)
        charge, hold = held(server.new_database(), Path(name), asked.answers)
    for kind in kinds:
        print(f"{kind:32} {statistics.median(found[kind]):7.1f} new queries a second")
    for over, under in (
        ("one developer, a database", "one developer, a file"),
        ("four developers, a database", "four developers, a file"),
        ("four developers, two services", "four developers, a database"),
    ):
        ratio = statistics.median(a / b for a, b in zip(found[over], found[under], strict=True))
        print(f"{over} / {under}: {ratio:.2f}")
    query = 1 / statistics.median(found["one developer, a database"])
    print(f"a charge, without its answer: {1000 * charge:.2f} ms, of which its chain is held {1000 * hold:.2f} ms")
    print(f"of one developer's query its chain is held {hold / query:.0%}; of that no other data set notices anything")


if __name__ == "__main__":
    main()
