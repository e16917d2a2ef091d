"""Time from starting the command to the first answered query of a three-process game, and to a service that is ready.

    python benchmarks/first_answer.py [--rounds 7] [--people 100000]

The game is the demo's: Adult, three processes and the runner, certificates, deals. The size query is answered first,
while h0 is still being trained. Beside it, in the same rounds, one bare Python process that imports what every party
needs (grpc and numpy): what starting processes costs on this machine at this moment. The median ratio is the figure to
compare between machines.

The service is of so many people in a CSV file, by each of two mechanisms; from the second round on its ledger is there.
Beside it a bare gRPC server, which says that it serves.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench_deployment import lay_out, serving
from short import parsed

from sim.transcripts.calls import calls
from sim.transcripts.files import read

SETTINGS = ("--set", "developer.queries=10", "--set", "compliance.epsilon=inf")


def first_answer(folder: Path) -> float:
    """Run a one-trial demo; the seconds until compliance's transcript has its first answer."""
    command = [sys.executable, "-m", "sim", "run", "demo", "--trials", "1", "--out", str(folder), *SETTINGS]
    started, seconds = time.perf_counter(), None
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        while seconds is None and run.poll() is None:
            time.sleep(0.01)
            if any(map(has_answered, folder.glob("*/transcript/compliance/*.bin"))):
                seconds = time.perf_counter() - started
    if run.returncode or seconds is None:
        raise RuntimeError("the run ended without an answer")
    return seconds


def has_answered(transcript: Path) -> bool:
    """Tell whether an audit that a transcript holds has been answered."""
    return any(call.answers for call in calls(read(transcript)) if call.method.endswith("/Audit"))


def bare_process() -> float:
    """Start one Python process that imports grpc and numpy."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import grpc, numpy"], check=True)
    return time.perf_counter() - started


BARE_SERVER = """
from concurrent.futures import ThreadPoolExecutor
import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
server, checks = grpc.server(ThreadPoolExecutor(4)), health.HealthServicer()
health_pb2_grpc.add_HealthServicer_to_server(checks, server)
server.add_insecure_port("127.0.0.1:0")
server.start()
checks.set("", health_pb2.HealthCheckResponse.SERVING)
"""


def bare_server() -> float:
    """Start one Python process that serves gRPC's health, and nothing else."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", BARE_SERVER], check=True)
    return time.perf_counter() - started


def ready(folder: Path) -> float:
    """Start a service; the seconds until it is ready."""
    started = time.perf_counter()
    with serving(folder):
        return time.perf_counter() - started


def starts(folder: Path, rounds: int, people: int) -> None:
    """Print the medians of starts, and their ratios to the bare server's of the same round."""
    seconds: dict[str, list[float]] = {"recommended": [], "cube": []}
    for mechanism in seconds:
        (folder / mechanism).mkdir()
        lay_out(folder / mechanism, people, mechanism, 25, {"alice": ""})
    bare = []
    for _ in range(rounds):
        bare.append(bare_server())
        for mechanism, found in seconds.items():
            found.append(ready(folder / mechanism))
    print(f"one bare gRPC server    median {statistics.median(bare):.2f} s")
    for mechanism, found in seconds.items():
        ratio = statistics.median(a / b for a, b in zip(found, bare, strict=True))
        print(f"ready by {mechanism:<14} median {statistics.median(found):.2f} s, {ratio:.1f} times (bar: under 3 s)")


def main() -> None:
    """Print the medians and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--people", type=int, default=100_000)
    asked = parsed(parser, rounds=1, people=1000)
    rounds = asked.rounds
    first_answers, bare = [], []
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
        with tempfile.TemporaryDirectory() as folder:
            first_answers.append(first_answer(Path(folder)))
        bare.append(bare_process())
    ratio = statistics.median(a / b for a, b in zip(first_answers, bare, strict=True))
    print(f"start to first answer   median {statistics.median(first_answers):.2f} s  (bar: under 3 s on 2 cores)")
    print(f"one bare process        median {statistics.median(bare):.2f} s")
    print(f"ratio, round by round   median {ratio:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        starts(Path(folder), rounds, asked.people)


if __name__ == "__main__":
    main()
