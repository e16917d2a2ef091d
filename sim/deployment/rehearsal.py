"""A deployment about people who do not exist, for whoever tries a client: ``python -m sim.deployment.rehearsal``.

It reads one line of JSON on stdin, the fields of `Asked`, prints one line, where the service listens and where a
developer's certificate is, and serves until stdin ends. All of it is in a folder that is gone then.
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
"""How few people of a label there may be, and the largest least group: that of the documented example."""

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
class Asked:
    """What a rehearsal is to be like.

    Parameters
    ----------
    data : what the data set is called.
    people : how many there are.
    ids : what they are known by; None where their order is trusted.
    labels : 0 or 1 of each; None has half of them drawn.
    metrics, mechanism, epsilon : as in a policy.
    seed : what everybody's groups are drawn by.
    """

    data: str
    people: int
    ids: Sequence[str] | None
    labels: Sequence[int] | None
    metrics: Sequence[str]
    mechanism: str
    epsilon: float
    seed: int


def prepare(folder: Path, asked: Asked) -> Path:
    """Write certificates, people and a policy into an empty folder; the policy's file."""
    write(folder / "certificates", _NAME, (_DEVELOPER,), 1)
    rng = np.random.default_rng(asked.seed)
    labels = np.arange(asked.people) % 2 if asked.labels is None else np.array(asked.labels, np.intp)
    if asked.labels is None:
        rng.shuffle(labels)
    sizes = np.bincount(labels, minlength=2)
    if sizes.min() < _LEAST:
        raise UserError(f"rows: a rehearsal needs at least {_LEAST} people of each label, 0 and 1")
    groups, few = np.full(asked.people, "a"), np.maximum(1, (_DISADVANTAGED * sizes).astype(np.intp))
    for label in (0, 1):
        groups[rng.permutation(np.flatnonzero(labels == label))[: few[label]]] = "b"
    columns = {"group": groups, "region": rng.choice(_REGIONS, asked.people), "label": labels}
    if asked.ids is not None:
        columns["id"] = np.array(asked.ids, object)
    _table(folder / "people.csv", columns)
    others = {"group": rng.choice(["a", "b"], asked.people), "region": rng.choice(_REGIONS, asked.people)}
    _table(folder / "others.csv", others)
    policy = folder / "policy.toml"
    policy.write_text(
        _POLICY.format(
            name=_NAME,
            developer=_DEVELOPER,
            data=json.dumps(asked.data),
            least=min(_MOST_LEAST, int(few.min())),
            id="" if asked.ids is None else 'id = "id"',
            regions=json.dumps(_REGIONS),
            metrics=json.dumps(asked.metrics),
            mechanism=json.dumps(asked.mechanism),
            epsilon=float(asked.epsilon),
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
    """Serve until stdin ends; status 2 with a line where there is nothing to serve."""
    with tempfile.TemporaryDirectory(prefix="rehearsal-") as name:
        folder = Path(name)
        try:
            policy = prepare(folder, Asked(**json.loads(sys.stdin.readline())))
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
