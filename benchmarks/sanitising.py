"""Sanitising, side by side with multi-freq-ldpy 0.2.5, which does one person at a time, in the same run.

    python benchmarks/sanitising.py --other PYTHON [--rows 100000] [--rounds 7] [--epsilon 1.0]

PYTHON is an interpreter that has `multi-freq-ldpy==0.2.5` and `xxhash<4`; it stays up and is asked in turn with ours.
Both run on one thread and are warm; times are CPU times, so that other work on the machine counts little.

Four columns with domains 2, 5, 41 and 74, each with its own epsilon of 1, all rows. Theirs is timed for the calls of
its client functions in a list comprehension; what a training program has to do then (the indicator of a subset, the
hashes of all values, the threshold) is not in its time. Ours is timed up to the encodings, which have that done;
`GRR codes`, like theirs, are codes. Ratios are medians of the rounds' ratios.
Exit status 1 if a bar is missed: 5 times as quick for codes of GRR, BLH and OLH.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from short import parsed

from compliance.mechanisms.local_protocols import PROTOCOLS, codes, seeded

DOMAINS = (2, 5, 41, 74)
BAR, BARRED = 5.0, ("GRR codes", "BLH", "OLH")

# A name, how many rows, and epsilon come in on a line, and seconds go out on one. A few calls compile first.
THEIRS = """
import sys, time
import numpy as np
from short import parsed
from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client
from multi_freq_ldpy.pure_frequency_oracles.HE import HE_Client
from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Client
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Client
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client

clients = {
    "grr": GRR_Client,
    "blh": lambda value, k, epsilon: LH_Client(value, k, epsilon, optimal=False),
    "olh": LH_Client,
    "rappor": lambda value, k, epsilon: UE_Client(value, k, epsilon, False),
    "oue": lambda value, k, epsilon: UE_Client(value, k, epsilon, True),
    "ss": SS_Client,
    "the-server": HE_Client,
}
clients["the"] = clients["the-server"]
for line in sys.stdin:
    name, rows, epsilon, *domains = line.split()
    columns = [(int(k), np.random.randint(0, int(k), int(rows)).tolist()) for k in domains]
    client, epsilon = clients[name], float(epsilon)
    for k, values in columns:
        [client(value, k, epsilon) for value in values[:100]]
    started = time.process_time()
    for k, values in columns:
        [client(value, k, epsilon) for value in values]
    print(time.process_time() - started, flush=True)
"""

NOBODY = "import sys\nfor _ in sys.stdin: print('nan', flush=True)"
"""What stands in where nobody else is to be compared with."""

Sanitise = Callable[[NDArray[np.int64], int], object]


def ours(name: str, epsilon: float) -> Sanitise:
    """Return what sanitises one column."""
    draw = seeded(bytes(32))
    if name == "GRR codes":
        return lambda values, k: codes(values, k, epsilon, draw)
    return lambda values, k: PROTOCOLS[name].sanitise(values, k, epsilon, draw)


def seconds(sanitise: Sanitise, rows: int) -> float:
    """Time all columns."""
    generator = np.random.default_rng(0)
    columns = [(generator.integers(k, size=rows), k) for k in DOMAINS]
    sanitise(*columns[-1])
    started = time.process_time()
    for values, k in columns:
        sanitise(values, k)
    return time.process_time() - started


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--other", metavar="PYTHON")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--epsilon", type=float, default=1.0, help="of each column")
    asked = parsed(parser, rows=1000, rounds=1)
    if asked.other is None and not asked.short:
        parser.error("--other: is missing; only --short does without")
    missed = []
    print(f"{asked.rows:,} rows, domains {DOMAINS}, epsilon {asked.epsilon:g} each\n")
    print(f"{'':24}{'ours s':>9}{'theirs s':>10}{'ratio':>8}{'least':>8}")
    other = subprocess.Popen(
        [asked.other or sys.executable, "-c", THEIRS if asked.other else NOBODY],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )
    with other as theirs:
        if theirs.stdin is None or theirs.stdout is None:
            raise RuntimeError("no pipes")
        for name in ("GRR codes", *(one for one in PROTOCOLS if PROTOCOLS[one].public.domain is None)):
            title = PROTOCOLS[name].public.title if name in PROTOCOLS else name
            times = []
            for _ in range(asked.rounds):
                mine = seconds(ours(name, asked.epsilon), asked.rows)
                theirs.stdin.write(
                    f"{name.split()[0].lower()} {asked.rows} {asked.epsilon} {' '.join(map(str, DOMAINS))}\n"
                )
                times.append((mine, float(theirs.stdout.readline())))
            ratios = [b / a for a, b in times]
            a, b = (statistics.median(column) for column in zip(*times, strict=True))
            print(f"{title:24}{a:9.3f}{b:10.3f}{statistics.median(ratios):8.1f}{min(ratios):8.1f}", flush=True)
            if title in BARRED and statistics.median(ratios) < BAR:
                missed.append(title)
    print(f"\nbar: {BAR:g} times for {', '.join(BARRED)}: {'MISSED by ' + ', '.join(missed) if missed else 'met'}")
    return int(bool(missed) and not asked.short)


if __name__ == "__main__":
    sys.exit(main())
