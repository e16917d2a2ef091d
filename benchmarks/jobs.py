"""How much sooner a sweep is played by two sessions at once: `--jobs 2` against `--jobs 1`, in turn.

    python benchmarks/jobs.py [--trials 60] [--jobs 2] [--rounds 3]

Whole runs are timed, from the command's start to its end: 60 trials of the reveal game in two cells, each of
which takes about a second to decode. The bar, on an idle machine with two cores: the best of three rounds takes at most
0.65 of the time. What each session starts with, three processes and a table, takes as long as a few such trials.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from short import parsed

CELLS = 2
GAME = """
[scenario]
name = "jobs"
game = "reveal"
trials = {trials}
seed = 7

[data]
source = "adult"
protected = "race"
test_size = 1000
n0 = 100

[compliance]
mechanism = "conceal"

[developer]
strategy = "sensing"
queries = 700
decoder = "l1"

[sweep]
"compliance.epsilon" = [1000.0, 100.0]
"""


def seconds(trials: int, jobs: int) -> float:
    """Play the sweep; how long it took in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        scenario = Path(folder) / "jobs.toml"
        scenario.write_text(GAME.format(trials=trials // CELLS))
        command = [sys.executable, "-m", "sim", "run", str(scenario), "--jobs", str(jobs), "--out", folder, "--json"]
        started = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - started


def main() -> None:
    """Print both times of every round, and the ratio of the best."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parsed(parser, trials=2, rounds=1)
    one, several = [], []
    for number in range(1, asked.rounds + 1):
        one.append(seconds(asked.trials, 1))
        several.append(seconds(asked.trials, asked.jobs))
        print(f"round {number}: --jobs 1 {one[-1]:.1f} s, --jobs {asked.jobs} {several[-1]:.1f} s")
    print(f"best of {asked.rounds}: {min(several) / min(one):.2f}   (bar: at most 0.65 with two sessions, two cores)")


if __name__ == "__main__":
    main()
