"""Answers a second of a deployed service, beside another version's: repeats, new queries, and a large stream.

    python benchmarks/audits_per_second.py [--against TREE] [--mechanism counts] [--answers 100] [--rounds 9] [--mib 64]

Of each version a real service process with a ledger on disk, and a real client that makes one call after the other:

* a new query: 40 models about 1,000 people;
* four new queries at a time: the same, from four threads of the client;
* a stored repeat of it;
* the terms: nothing computed, nothing committed;
* a large stream: a new query of so many MiB, about 32,768 people.

TREE is a checkout of the other version, run by this interpreter. Versions take turns within each round, and which one
begins changes. What is printed is the median over the rounds: milliseconds an answer, as the client waits; processor
time of the service for each; and the other version's share of ours, of both: above 1 we are faster. In the same rounds,
what one durable commit of SQLite (WAL, synchronous FULL) and one sync of a small file cost on the same disk.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from bench_deployment import lay_out
from short import parsed

from fairwall.client import AuditClient

HERE = Path(__file__).resolve().parents[1]
PEOPLE, MODELS, EPSILON = 1000, 40, 1.0
MANY_PEOPLE = 1 << 15
FOUR = "four new queries at a time"


@contextmanager
def serving(folder: Path) -> Iterator[tuple[AuditClient, int]]:
    """Serve a deployment; a client of it, and the service's process."""
    command = [sys.executable, "-m", "compliance", "--policy", str(folder / "policy.toml")]
    with (folder / "log").open("w") as log:
        service = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=folder)
    assert service.stdout is not None
    try:
        address = json.loads(service.stdout.readline())["address"]
        with AuditClient(address, folder / "certificates" / "developer-alice") as audits:
            yield audits, service.pid
    finally:
        service.terminate()
        service.wait()


def processor_seconds(pid: int) -> float:
    """Return what a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def drive(folder: Path, mib: int) -> None:
    """Serve what is laid out in a folder, make calls as stdin says, how many of which kind; print what they took."""
    rng = np.random.default_rng(0)
    with ExitStack() as running:
        small, small_pid = running.enter_context(serving(folder / "small"))
        large, large_pid = running.enter_context(serving(folder / "large"))
        batch = rng.random((MODELS, PEOPLE))
        stream = rng.random(((mib << 20) // (8 * MANY_PEOPLE), MANY_PEOPLE))
        calls: dict[str, tuple[int, Callable[[], object]]] = {
            "a stored repeat": (small_pid, lambda: small.ask(batch, "sp", EPSILON, request_id="stored")),
            "a large stream": (large_pid, lambda: large.ask(stream, "sp", EPSILON)),
            "a new query": (small_pid, lambda: small.ask(batch, "sp", EPSILON)),
            FOUR: (small_pid, lambda: small.ask(batch, "sp", EPSILON)),
            "terms, nothing computed": (small_pid, small.terms),
        }
        for _, call in calls.values():
            call()  # imports what is imported late, and buys what is repeated
        print("ready", flush=True)
        for line in sys.stdin:
            what, times = json.loads(line)
            pid, call = calls[what]
            before, began = processor_seconds(pid), time.perf_counter()
            with ThreadPoolExecutor(4 if what == FOUR else 1) as threads:
                for done in [threads.submit(call) for _ in range(times)]:
                    done.result()
            took = time.perf_counter() - began
            told = {"seconds": took / times, "processor": (processor_seconds(pid) - before) / times}
            print(json.dumps(told), flush=True)


@contextmanager
def driving(tree: Path, folder: Path, mechanism: str, mib: int) -> Iterator[Callable[[str, int], dict[str, float]]]:
    """Start a version's service and client; what has it make calls."""
    for size, people, answers_by in (("small", PEOPLE, mechanism), ("large", MANY_PEOPLE, "laplace")):
        (folder / size).mkdir(parents=True)
        lay_out(folder / size, people, answers_by, 4096, {"alice": ""})
    command = [sys.executable, __file__, "--drive", str(folder), "--mib", str(mib)]
    path = os.pathsep.join(str(folder) for folder in (tree, tree / "proto"))
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        to, answers = process.stdin, process.stdout

        def measure(what: str, times: int) -> dict[str, float]:
            to.write(json.dumps([what, times]) + "\n")
            to.flush()
            told: dict[str, float] = json.loads(answers.readline())
            return told

        yield measure
        process.stdin.close()


def disk(folder: Path) -> dict[str, Callable[[], object]]:
    """Make calls that do what a charge does to the disk, and no more."""
    db = sqlite3.connect(folder / "commits.sqlite", isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE rows (body BLOB)")

    def sync() -> None:
        with (folder / "head").open("wb") as file:
            file.write(b"x" * 200)
            file.flush()
            os.fsync(file.fileno())

    return {"one commit alone": lambda: db.execute("INSERT INTO rows VALUES (?)", (b"x" * 1500,)), "one sync": sync}


def main() -> None:
    """Print the medians over the rounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, help="a checkout of another version")
    parser.add_argument("--mechanism", default="counts")
    parser.add_argument("--answers", type=int, default=100, help="in a round, of each kind but the large stream")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--mib", type=int, default=64)
    parser.add_argument("--drive", type=Path, help=argparse.SUPPRESS)
    asked = parsed(parser, answers=4, rounds=1, mib=2)
    if asked.drive:
        drive(asked.drive, asked.mib)
        return
    trees = {"ours": HERE} | ({"other": asked.against.resolve()} if asked.against else {})
    kinds = ("a stored repeat", "a large stream", "a new query", FOUR, "terms, nothing computed")
    measured: dict[tuple[str, str], list[dict[str, float]]] = {}
    alone: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name, ExitStack() as running:
        versions = {
            which: running.enter_context(driving(tree, Path(name) / which, asked.mechanism, asked.mib))
            for which, tree in trees.items()
        }
        on_disk = disk(Path(name))
        for number in range(asked.rounds):
            print(f"round {number + 1} of {asked.rounds}", file=sys.stderr)
            for kind in kinds:
                times = 4 if kind == "a large stream" else asked.answers
                for which in list(versions)[:: 1 if number % 2 else -1]:
                    measured.setdefault((kind, which), []).append(versions[which](kind, times))
            for what, call in on_disk.items():
                for _ in range(asked.answers // 4):
                    began = time.perf_counter()
                    call()
                    alone.setdefault(what, []).append(time.perf_counter() - began)
    for kind in kinds:
        print(say(kind, {which: measured[kind, which] for which in trees}))
    for what, values in alone.items():
        print(f"{what:26} {1000 * statistics.median(values):7.2f} ms")


def say(kind: str, by: dict[str, list[dict[str, float]]]) -> str:
    """Say what one kind of call takes, and how many times as much the other version takes, by rounds."""

    def median(which: str, field: str) -> float:
        return 1000 * statistics.median(each[field] for each in by[which])

    parts = [
        f"{which} {median(which, 'seconds'):7.2f} ms ({median(which, 'processor'):6.2f} ms of processor)"
        for which in by
    ]
    if "other" in by:
        ratios: dict[str, Any] = {
            field: statistics.median(
                theirs[field] / ours[field] for ours, theirs in zip(by["ours"], by["other"], strict=True)
            )
            for field in ("seconds", "processor")
        }
        parts.append(f"other / ours {ratios['seconds']:5.2f} (processor {ratios['processor']:5.2f})")
    return f"{kind:26} " + "   ".join(parts)


if __name__ == "__main__":
    main()
