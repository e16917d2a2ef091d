"""A deployment to measure: people who do not exist, certificates, and a budget that is never spent."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

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
mechanism = "{mechanism}"
queries_max = {queries_max}

[budget]
epsilon = 1000000.0
"""


def lay_out(
    folder: Path,
    people: int,
    mechanism: str,
    queries_max: int,
    developers: Mapping[str, str],
    strangers: Sequence[str] = (),
) -> None:
    """Write a deployment's files.

    Parameters
    ----------
    folder : Path
    people : int
        One in ten is advantaged.
    mechanism : str
    queries_max : int
        Models a batch.
    developers : mapping of str to str
        By name, what the policy says of each besides its epsilon, as TOML.
    strangers : sequence of str
        Who has a certificate, and is not in the policy.
    """
    from sim.deployment.certificates import write

    write(folder / "certificates", "bench", [*developers, *strangers], 1)
    rows = [f"{'ab'[i % 10 == 0]},{int(i % 3 == 0)},{i}" for i in range(people)]
    (folder / "people.csv").write_text("\n".join(["group,outcome,row", *rows]) + "\n")
    shares = (f"\n[developers.{name}]\nepsilon = 1000000.0\n{more}" for name, more in developers.items())
    (folder / "policy.toml").write_text(POLICY.format(mechanism=mechanism, queries_max=queries_max) + "".join(shares))


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve a deployment that is laid out; its address."""
    command = [sys.executable, "-I", "-m", "compliance", "--policy", str(folder / "policy.toml")]
    with (
        (folder / "log").open("a") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as service,
    ):
        assert service.stdout is not None
        try:
            yield json.loads(service.stdout.readline())["address"]
        finally:
            service.terminate()
