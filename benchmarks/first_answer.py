"""Time from starting the command to the first answered query of a three-process game, h0 still being trained.

    python benchmarks/first_answer.py [--rounds 7]

The game is the demo's: Adult, three processes and the runner, certificates, deals. The size query is answered first.
Beside it, in the same rounds, one bare Python process that imports what every party needs (grpc and numpy): what
starting processes costs on this machine at this moment. The median ratio is the figure to compare between machines.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

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


def main() -> None:
    """Print the medians and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parsed(parser, rounds=1).rounds
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


if __name__ == "__main__":
    main()
