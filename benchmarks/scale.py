"""What very many people take: a service's start, and one answer about 25 decisions by stream and by reference.

    python benchmarks/scale.py [--people 10000 100000 1000000 10000000] [--rounds 3]

People and predictions are Parquet files, in orders of their own, which ids join. For each number of people two services
start, one on the file and one that leaves people in DuckDB. In each round, in turn, each a process of its own: the bare
query that joins both files and adds up by label and group (DuckDB, two threads); the same by pandas' reader and NumPy;
a client that sends the file's predictions; one that names the table. Printed are medians of seconds, peaks of memory
in GB, and ratios of the same rounds. By reference `cube` answers, by stream `recommended`.

    python benchmarks/scale.py --scores 400 --people 1000000

measures a batch of scores in float32 by stream alone, from a file on disk.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from short import parsed

sys.path.insert(0, str(Path(__file__).parents[1]))

POLICY = """
[deployment]
name = "bench"
listen = "127.0.0.1:0"
credentials = "{name}/compliance"
ledger = "{name}/ledger/ledger.sqlite"
seal = "{name}/seal/head"

[data]
source = "{source}"
id = "customer"
protected = "group"
advantaged = "a"
label = "repaid"
positive = "1"
minimum_group = 20

[audit]
metrics = ["sp", "eo"]
mechanism = "{mechanism}"
queries_max = 400

[budget]
epsilon = 1000.0

[developers.alice]
epsilon = 1000.0
"""

TABLE = '\n[tables.scores]\nsource = "parquet:scores.parquet"\ndevelopers = ["alice"]\n'

PEAK = """
peak = [line for line in open("/proc/self/status") if line.startswith("VmHWM")][0].split()[1]
print(time.perf_counter() - began, int(peak) / 1e6)
"""

DUCKDB = """
import time
began = time.perf_counter()
import duckdb
sums = ", ".join(f"sum(m{j})" for j in range(25))
duckdb.connect(config={"threads": 2}).execute(
    f'SELECT repaid, "group", count(*), {sums} FROM read_parquet("people.parquet") '
    'JOIN read_parquet("scores.parquet") USING (customer) GROUP BY ALL').fetchall()
"""

NUMPY = """
import time
began = time.perf_counter()
import numpy as np, pyarrow.parquet as pq
people, scores = pq.read_table("people.parquet"), pq.read_table("scores.parquet")
at, of = (np.argsort(table["customer"].to_numpy()) for table in (people, scores))
groups = people["group"].combine_chunks().dictionary_encode().indices.to_numpy()[at]
for j in range(25):
    rows = scores[f"m{j}"].to_numpy()[of]
    rows[groups == 0].sum(), rows[groups == 1].sum()
"""

CLIENT = """
import time
began = time.perf_counter()
from fairwall.client import AuditClient
with AuditClient("{address}", "{name}/developer-alice") as audits:
    {ask}
"""

STREAM = 'audits.ask("scores.parquet", "sp", 1.0, ids="customer")'
REFERENCE = 'audits.ask_table("scores", "sp", 1.0, id="customer")'
SCORES = 'import numpy as np; audits.ask(np.load("scores.npy", mmap_mode="r"), "sp", 1.0)'


def lay_out(folder: Path, people: int) -> None:
    """Write tables, policies and certificates."""
    import pyarrow as pa
    from pyarrow import parquet

    from sim.deployment.certificates import write

    generator = np.random.default_rng(people)
    ids = generator.permutation(people) + 10**9
    columns = {
        "customer": ids,
        "group": np.where(generator.random(people) < 0.7, "a", "b"),
        "repaid": generator.integers(0, 2, people),
    }
    parquet.write_table(pa.table(columns), folder / "people.parquet")
    scores = {f"m{j}": (generator.random(people) < 0.4).astype(np.uint8) for j in range(25)}
    parquet.write_table(pa.table({"customer": generator.permutation(ids), **scores}), folder / "scores.parquet")
    for name in ("stream", "reference"):
        write(folder / name, "bench", ["alice"], 1)
    stream = POLICY.format(name="stream", source="people.parquet", mechanism="recommended")
    (folder / "stream.toml").write_text(stream)
    reference = POLICY.format(name="reference", source="parquet:people.parquet", mechanism="cube")
    (folder / "reference.toml").write_text(reference + TABLE)


@contextmanager
def serving(folder: Path, name: str) -> Iterator[tuple[str, int, float]]:
    """Serve one of the policies: its address, its process, and the seconds until it was ready."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "compliance", "--even-if-worthless", "--even-if-revealing", "--policy"]
    with (folder / "log").open("a") as log:
        service = subprocess.Popen(
            [*command, str(folder / f"{name}.toml")], stdout=subprocess.PIPE, stderr=log, text=True, cwd=folder
        )
    assert service.stdout is not None
    try:
        line = service.stdout.readline()
        if not line:
            sys.exit((folder / "log").read_text()[-500:])
        yield line.split('"')[3], service.pid, time.perf_counter() - began
    finally:
        service.terminate()
        service.wait()


def peak(process: int) -> float:
    """Return the most memory that a process had since this was asked last, in GB."""
    status = Path(f"/proc/{process}/status").read_text().splitlines()
    Path(f"/proc/{process}/clear_refs").write_text("5")
    return int(next(line for line in status if line.startswith("VmHWM")).split()[1]) / 1e6


def measured(folder: Path, code: str) -> tuple[float, float]:
    """Run a program; its seconds, and its peak."""
    done = subprocess.run([sys.executable, "-c", code + PEAK], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    seconds, memory = map(float, done.stdout.split()[-2:])
    return seconds, memory


def compare(people: int, rounds: int) -> None:
    """Measure all of it about so many people."""
    with tempfile.TemporaryDirectory(dir=Path(__file__).parents[1]) as name:
        folder = Path(name)
        lay_out(folder, people)
        with serving(folder, "stream") as (stream, own, ready), serving(folder, "reference") as (table, other, ready2):
            starts = peak(own), peak(other)
            programs = {
                "query": (DUCKDB, None),
                "NumPy": (NUMPY, None),
                "stream": (CLIENT.format(address=stream, name="stream", ask=STREAM), own),
                "reference": (CLIENT.format(address=table, name="reference", ask=REFERENCE), other),
            }
            found: dict[str, list[tuple[float, float, float]]] = {each: [] for each in programs}
            for _ in range(rounds):
                for each, (code, process) in programs.items():
                    found[each].append((*measured(folder, code), 0.0 if process is None else peak(process)))
    print(
        f"{people:,} people: ready in {ready:.1f} s ({starts[0]:.2f} GB), by reference {ready2:.1f} s ({starts[1]:.2f})"
    )
    for each, told in found.items():
        seconds, client, service = (statistics.median(of) for of in zip(*told, strict=True))
        ratios = [
            statistics.median(one[0] / base[0] for one, base in zip(told, found[than], strict=True))
            for than in ("query", "NumPy")
        ]
        print(
            f"  {each:<9} {seconds:6.2f} s, {ratios[0]:5.2f} of the query, {ratios[1]:5.2f} of NumPy; "
            f"{client:.2f} GB, service {service:.2f} GB",
            flush=True,
        )


def scores(people: int, models: int) -> None:
    """Measure one batch of scores by stream."""
    with tempfile.TemporaryDirectory(dir=Path(__file__).parents[1]) as name:
        folder = Path(name)
        lay_out(folder, people)
        rows = np.lib.format.open_memmap(folder / "scores.npy", "w+", np.float32, (models, people))
        for row in rows:
            row[:] = np.random.default_rng(1).random(people, np.float32)
        rows.flush()
        with serving(folder, "stream") as (address, process, _):
            peak(process)
            seconds, client = measured(folder, CLIENT.format(address=address, name="stream", ask=SCORES))
            print(f"{models} scores of {people:,}: {seconds:.1f} s, {client:.2f} GB, service {peak(process):.2f} GB")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, nargs="+", default=[10**4, 10**5, 10**6, 10**7])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scores", type=int, default=0)
    asked = parsed(parser, people=[3000], rounds=1)
    for people in asked.people:
        if asked.scores:
            scores(people, asked.scores)
        else:
            compare(people, asked.rounds)


if __name__ == "__main__":
    main()
