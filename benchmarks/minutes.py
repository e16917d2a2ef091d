"""How many minutes the shipped scenarios take: one trial a cell is played, and the rest worked out from it.

    python benchmarks/minutes.py [--limit SECONDS] [--runs FOLDER ...] [NAME ...]

writes what it finds into `sim/scenarios/measured/minutes.toml`, which `fairwall list` shows, and keeps what is there
of others. A scenario that takes longer than the limit is stopped; cells that it did not come to count as those that it
did. With `--runs`, the times of runs that are there already are taken, and nothing is played.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from statistics import fmean

import tomli_w
from short import parsed

from sim.games import read
from sim.scenarios.sweep import SHIPPED, shipped

TABLE = SHIPPED / "measured" / "minutes.toml"
_START = 4.0
"""Seconds until three processes are there and a page is written."""


def minutes(name: str, lines: Iterable[str]) -> float | None:
    """Work out how long a scenario takes, from lines of a run's ``trials.jsonl``; None of no line.

    Parameters
    ----------
    name : str
    lines : iterable of str
    """
    sweep = read(name)
    # A trial may have several lines, each with the whole of its time.
    taken: dict[str, dict[int, float]] = {}
    for line in map(json.loads, lines):
        cell = json.dumps([line[key] for key in sweep.scenario.axes])
        taken.setdefault(cell, {})[line["trial"]] = line["seconds"]
    if not taken:
        return None
    a_trial = fmean(fmean(trials.values()) for trials in taken.values())
    trials = sum(int(cell.scenario.scenario.trials) for cell in sweep.cells)
    return (_START + a_trial * trials) / 60


def played(name: str, limit: float) -> list[str]:
    """Play one trial a cell, as far as that goes, and give the run's lines."""
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "sim", "run", name, "--trials", "1", "--out", place, "--json"]
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(command, timeout=limit, capture_output=True, check=False)
        return [line for file in Path(place).glob("*/trials.jsonl") for line in file.read_text().splitlines()]


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[], help="shipped scenarios; all, if none and no run is given")
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--runs", type=Path, nargs="*", default=[])
    asked = parsed(parser, names=["linear-german"])
    for folder in asked.runs:
        name = tomllib.loads((folder / "scenario.toml").read_text())["scenario"]["name"]
        _write(name, minutes(name, (folder / "trials.jsonl").read_text().splitlines()), not asked.short)
    for name in asked.names or ([] if asked.runs else shipped()):
        _write(name, minutes(name, played(name, asked.limit)), not asked.short)


def _write(name: str, found: float | None, keep: bool) -> None:
    if found is None:
        print(f"{name}: no trial finished")
        return
    table = tomllib.loads(TABLE.read_text()) if TABLE.exists() else {}
    table[name] = float(f"{found:.2g}")
    if keep:
        TABLE.write_text(tomli_w.dumps(dict(sorted(table.items()))))
    print(f"{name}: {table[name]} minutes")


if __name__ == "__main__":
    main()
