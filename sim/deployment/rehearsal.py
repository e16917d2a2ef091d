"""A deployment with synthetic people, for trying a client: ``python -m sim.deployment.rehearsal``.

It reads the fields of `RehearsalSettings` as one line of JSON on stdin, prints one line with the service's address
and the folder of a developer's certificate, and serves until stdin ends. All its files are in a folder that is then
removed.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fairwall.errors import UserError
from sim.deployment.certificates import write

_NAME = "rehearsal"
_DEVELOPER = "you"
_DISADVANTAGED = 0.3
_REGIONS = ("north", "east", "south", "west")
_LEAST, _MOST_LEAST = 3, 20
"""Fewest people of a label, and the largest ``minimum_group``: that of the documented example."""

_POLICY = """
[deployment]
name = "{name}"
listen = "127.0.0.1:0"
credentials = "certificates/compliance"
ledger = "ledger/ledger.sqlite"
seal = "seal/head"
[data]
name = {data}
source = "people.csv"
protected = "group"
advantaged = "a"
label = "label"
positive = "1"
minimum_group = {least}
{id}
[data.groups]
group = ["a", "b"]
region = {regions}
[audit]
metrics = {metrics}
mechanism = {mechanism}
queries_max = 1000
epsilon_min = 1e-6
[budget]
epsilon = {epsilon!r}
[release]
source = "others.csv"
protocol = "grr"
epsilon = {epsilon!r}
[release.columns]
group = ["a", "b"]
region = {regions}
[developers.{developer}]
epsilon = {epsilon!r}
release = {epsilon!r}
"""


@dataclass(frozen=True)
class RehearsalSettings:
    """The parameters of a rehearsal; ``metrics``, ``mechanism`` and ``epsilon`` are as in a policy.

    ``ids`` are None where the people's order is trusted; ``labels`` are 0 or 1, None for a random half of each.
    """

    data: str
    people: int
    ids: Sequence[str] | None
    labels: Sequence[int] | None
    metrics: Sequence[str]
    mechanism: str
    epsilon: float
    seed: int


def prepare(folder: Path, settings: RehearsalSettings) -> Path:
    """Write certificates, people and a policy into an empty folder; return the policy's file."""
    write(folder / "certificates", _NAME, (_DEVELOPER,), 1)
    rng = np.random.default_rng(settings.seed)
    labels = np.arange(settings.people) % 2 if settings.labels is None else np.array(settings.labels, np.intp)
    if settings.labels is None:
        rng.shuffle(labels)
    sizes = np.bincount(labels, minlength=2)
    if sizes.min() < _LEAST:
        raise UserError(f"rows: a rehearsal needs at least {_LEAST} people of each label, 0 and 1")
    groups, few = np.full(settings.people, "a"), np.maximum(1, (_DISADVANTAGED * sizes).astype(np.intp))
    for label in (0, 1):
        groups[rng.permutation(np.flatnonzero(labels == label))[: few[label]]] = "b"
    columns = {"group": groups, "region": rng.choice(_REGIONS, settings.people), "label": labels}
    if settings.ids is not None:
        columns["id"] = np.array(settings.ids, object)
    _table(folder / "people.csv", columns)
    others = {"group": rng.choice(["a", "b"], settings.people), "region": rng.choice(_REGIONS, settings.people)}
    _table(folder / "others.csv", others)
    policy = folder / "policy.toml"
    policy.write_text(
        _POLICY.format(
            name=_NAME,
            developer=_DEVELOPER,
            data=json.dumps(settings.data),
            least=min(_MOST_LEAST, int(few.min())),
            id="" if settings.ids is None else 'id = "id"',
            regions=json.dumps(_REGIONS),
            metrics=json.dumps(settings.metrics),
            mechanism=json.dumps(settings.mechanism),
            epsilon=float(settings.epsilon),
        )
    )
    return policy


def _table(path: Path, columns: dict[str, NDArray[np.generic]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(columns)
        table.writerows(zip(*columns.values(), strict=True))
    path.chmod(0o600)


def main() -> None:
    """Serve until stdin ends; exit with status 2 and a line where that is impossible."""
    with tempfile.TemporaryDirectory(prefix="rehearsal-") as name:
        folder = Path(name)
        try:
            policy = prepare(folder, RehearsalSettings(**json.loads(sys.stdin.readline())))
        except UserError as error:
            sys.exit(_refuse(str(error)))
        command = [sys.executable, "-I", "-m", "compliance", "--policy", str(policy)]
        command += ["--even-if-worthless", "--even-if-revealing"]
        with (
            (folder / "log").open("wb") as log,
            subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log) as service,  # noqa: S603
        ):
            assert service.stdout is not None
            line = service.stdout.readline()
            if not line:
                said = (folder / "log").read_text(errors="replace").strip().rpartition("\n")[2]
                sys.exit(_refuse(said.removeprefix(f"compliance: {policy}: ")))
            told = {"address": json.loads(line)["address"]}
            told["credentials"] = str(folder / "certificates" / f"developer-{_DEVELOPER}")
            print(json.dumps(told), flush=True)  # noqa: T201
            sys.stdin.read()
            service.terminate()


def _refuse(why: str) -> int:
    print(why, file=sys.stderr)  # noqa: T201
    return 2


if __name__ == "__main__":
    main()
