"""Trials a second of the cheapest whole game: `linear`, n = m = 100, decoder `lstsq`, on Adult and on synthetic scores.

    python benchmarks/trials_per_second.py [--trials 200] [--rounds 3]

Counted once started: from the end of the first trial (processes up, base model trained) to the end of the last. Beside
it, in the same rounds, the arithmetic alone in one process: rows, exact gaps and least squares without any wire. Their
ratio is what separation costs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from short import parsed

from developer.reveal.decode import DECODERS, DecoderInputs

PEOPLE = 100
GAME = """
[scenario]
name = "trials-per-second"
game = "reveal"

[compliance]
mechanism = "exact"

[developer]
strategy = "linear"
decoder = "lstsq"
queries = 100

[data]
"""
ADULT = """
source = "adult"
protected = "race"
test_size = 100
n0 = 10
"""
SYNTHETIC = """
source = "synthetic"
n = 100
n0 = 10
scores = "uniform"
"""


def game(trials: int, data: str) -> float:
    """Play the game; trials a second after the first."""
    with tempfile.TemporaryDirectory() as folder:
        scenario = Path(folder) / "game.toml"
        scenario.write_text(GAME + data)
        command = [
            sys.executable,
            "-m",
            "sim",
            "run",
            str(scenario),
            "--trials",
            str(trials),
            "--out",
            folder,
            "--json",
        ]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    seconds = [trial["seconds"] for trial in json.loads(output)["trials"]]
    return float((trials - 1) / sum(seconds[1:]))


def arithmetic(trials: int) -> float:
    """Do a trial's sums without processes; trials a second."""
    rng = np.random.default_rng(0)
    started = time.perf_counter()
    for _ in range(trials):
        scores = rng.random(PEOPLE)
        protected = rng.random(PEOPLE) < 0.9
        rows = np.tile(scores, (PEOPLE, 1))
        np.fill_diagonal(rows, 1 - scores)
        gaps = rows[:, protected].mean(axis=1) - rows[:, ~protected].mean(axis=1)
        DECODERS["lstsq"](DecoderInputs(rows, gaps, 10, 90))
    return trials / (time.perf_counter() - started)


def main() -> None:
    """Print the medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parsed(parser, trials=2, rounds=1)
    rows: dict[str, list[float]] = {"Adult": [], "synthetic": [], "arithmetic alone": []}
    for number in range(asked.rounds):
        print(f"round {number + 1} of {asked.rounds}", file=sys.stderr)
        rows["Adult"].append(game(asked.trials, ADULT))
        rows["synthetic"].append(game(asked.trials, SYNTHETIC))
        rows["arithmetic alone"].append(arithmetic(asked.trials))
    for name, values in rows.items():
        print(f"{name:17} median {statistics.median(values):7.1f} trials/s")
    ratio = statistics.median(a / b for a, b in zip(rows["arithmetic alone"], rows["Adult"], strict=True))
    print(f"arithmetic alone / Adult: {ratio:.1f}   (bar: Adult and synthetic over 40 trials/s)")


if __name__ == "__main__":
    main()
