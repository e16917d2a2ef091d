"""What fixed kernels cost: games with them, and with those that the libraries choose here, in interleaved rounds.

    python benchmarks/kernels.py [--rounds 21] [--short]

A game is played whole, by `fairwall run`, on the same people each time; its time is the processor time of all its
processes together, in one thread each either way. Printed are the least time of each way, and of the ratios of the
rounds the median with the middle half: 1.03 is 3% more. A single round is off by 10% where the machine is shared, so
that a difference of 3% takes twenty or more.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import quantiles

from short import parsed

GAMES = {
    "reveal, conceal-adult-100": ("conceal-adult-100", 10, ["developer.queries=[40]", "compliance.epsilon=[100]"]),
    "reveal, limit-synthetic-10000": ("limit-synthetic-10000", 1, ["developer.strategy=['best']"]),
    "inference, dia-german": ("dia-german", 1, ["developer.defence=['fft']", "adversary.shadows=8"]),
}
SHORT = {"reveal, conceal-adult-100": ("conceal-adult-100", 2, ["developer.queries=[40]", "compliance.epsilon=[100]"])}

KEY = bytes(32)
"""Whom a run deals follows from its key: without one, each time would be of other people."""

PYTHON = """#!{python}
import os, runpy, sys
from fairwall.rpc import kernels
if not {fixed}:
    kernels.fix = lambda: os.environ.update(kernels.ONE_THREAD)
del sys.argv[:sys.argv.index("-m") + 1]
sys.executable = {path!r}
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


def seconds(scenario: str, trials: int, settings: list[str], *, fixed: bool) -> float:
    """Play a game; how long all its processes computed."""
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder, "python")
        python.write_text(PYTHON.format(python=sys.executable, fixed=fixed, path=str(python)))
        python.chmod(0o700)
        key = Path(folder, "key")
        key.touch(0o600)
        key.write_bytes(KEY)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [
                str(python),
                "-m",
                "sim",
                "run",
                scenario,
                "--trials",
                str(trials),
                "--secret",
                str(key),
                "--out",
                folder,
                "--json",
            ]
            + [f"--set={setting}" for setting in settings],
            check=True,
            capture_output=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print what each game takes in both ways, and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=21)
    asked = parsed(parser, rounds=1)
    for name, game in (SHORT if asked.short else GAMES).items():
        taken: dict[bool, list[float]] = {True: [], False: []}
        for number in range(asked.rounds):
            for way in (True, False) if number % 2 else (False, True):
                taken[way].append(seconds(*game, fixed=way))
        ratios = [fixed / chosen for fixed, chosen in zip(taken[True], taken[False], strict=True)]
        low, middle, high = quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
        print(
            f"{name}: fixed kernels {min(taken[True]):.2f} s, chosen ones {min(taken[False]):.2f} s: "
            f"ratio {middle:.3f} ({low:.3f} to {high:.3f})"
        )


if __name__ == "__main__":
    main()
