"""Audits a second of a deployed service: a stored repeat, and a new query of 40 models about 1,000 people.

    python benchmarks/audits_per_second.py [--queries 300] [--rounds 3]

A real service process with a ledger on disk, a real client, one call after the other. Beside them, in the same rounds,
what one durable commit of SQLite (WAL, synchronous FULL) costs on the same disk, and a call that neither computes nor
commits (the terms).
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from developer.client import AuditClient
from sim.deployment.certificates import write

PEOPLE, MODELS, EPSILON = 1000, 40, 1.0
POLICY = """
[deployment]
name = "bench"
listen = "127.0.0.1:0"
credentials = "certificates/compliance"
ledger = "ledger/ledger.sqlite"
seal = "seal/head"

[data]
source = "people.csv"
protected = "group"
advantaged = "a"
label = "outcome"
positive = "1"
minimum_group = 20

[audit]
metrics = ["sp"]
mechanism = "counts"
queries_max = 100

[budget]
epsilon = 1000000.0

[developers.alice]
epsilon = 1000000.0
"""


def per_second(call: Callable[[int], object], times: int) -> float:
    """Call so many times, one after the other; calls a second."""
    started = time.perf_counter()
    for number in range(times):
        call(number)
    return times / (time.perf_counter() - started)


def committing(folder: Path) -> Callable[[int], object]:
    """Make a call that commits one small row durably."""
    db = sqlite3.connect(folder / "commits.sqlite", isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE rows (number INTEGER, body BLOB)")
    return lambda number: db.execute("INSERT INTO rows VALUES (?, ?)", (number, b"x" * 500))


def main() -> None:
    """Print the medians over the rounds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    rng = np.random.default_rng(0)
    rates: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / "certificates", "bench", ["alice"], 1)
        rows = [f"{'ab'[i % 10 == 0]},{int(i % 3 == 0)},{i}" for i in range(PEOPLE)]
        (folder / "people.csv").write_text("\n".join(["group,outcome,row", *rows]) + "\n")
        (folder / "policy.toml").write_text(POLICY)
        command = [sys.executable, "-I", "-m", "compliance", "--policy", str(folder / "policy.toml")]
        service = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert service.stdout is not None
        try:
            address = json.loads(service.stdout.readline())["address"]
            batches = rng.random((asked.queries, MODELS, PEOPLE))
            commit = committing(folder)
            with AuditClient(address, folder / "certificates" / "developer-alice") as audits:
                audits.ask(batches[0], "sp", EPSILON, request_id="stored")
                for number in range(asked.rounds):
                    print(f"round {number + 1} of {asked.rounds}", file=sys.stderr)
                    cases: dict[str, Callable[[int], object]] = {
                        "terms, nothing computed": lambda _: audits.terms(),
                        "a stored repeat": lambda _: audits.ask(batches[0], "sp", EPSILON, request_id="stored"),
                        "a new query": lambda i: audits.ask(batches[i], "sp", EPSILON),
                        "one commit alone": commit,
                    }
                    for what, call in cases.items():
                        rates.setdefault(what, []).append(per_second(call, asked.queries))
        finally:
            service.terminate()
            service.wait()
    for what, values in rates.items():
        rate = statistics.median(values)
        print(f"{what:25} median {rate:8.0f} a second   {1000 / rate:6.2f} ms each")


if __name__ == "__main__":
    main()
