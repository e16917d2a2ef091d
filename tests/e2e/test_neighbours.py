"""Neighbours told apart by nothing but noisy numbers, where the service is a process and calls are gRPC over mTLS."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import time
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import count, zip_longest
from pathlib import Path
from typing import Any

import grpc
import pytest

from compliance.deployment.running import read_by, service_of
from compliance.ledger.place import inspect
from fairwall.laws.metrics.metric import METRICS
from fairwall.rpc import channel, identity
from fairwall.rpc.access import CALLERS
from fairwall.rpc.errors import audit_error_of
from sim.deployment.certificates import write
from tests.neighbours import compared
from tests.neighbours.drawn import Drawn, draw
from tests.neighbours.service import read
from tests.neighbours.world import NAME
from tests.support.loans_deployment import Deployment
from tests.twins.leaks import LEAKS

ROOT = Path(__file__).parents[2]


@dataclass
class Remote:
    """A world whose service is a process; see `tests.neighbours.world.World`."""

    deployment: Deployment
    running: ExitStack
    seen: list[Any] = field(default_factory=list)
    channels: dict[str, grpc.Channel] = field(default_factory=dict)

    @property
    def ledger(self) -> Path:
        return self.deployment.folder / "ledger" / "ledger.sqlite"

    def start(self) -> None:
        self.running.enter_context(self.deployment.served())

    def restart(self) -> None:
        self.running.close()
        self.channels.clear()
        self.start()

    def reload(self, text: str) -> None:
        process, before = service_of(self.ledger), read_by(self.ledger).times
        self.write(text)
        assert process
        os.kill(process, signal.SIGHUP)
        while (told := read_by(self.ledger)).times <= before:  # it is none while it is written
            time.sleep(0.01)
        self.seen.append((told.policy, told.problem))

    def write(self, text: str) -> None:
        text = text.replace("127.0.0.1:1", self.deployment.address)
        text = text.replace('= "credentials"', '= "certificates/compliance"')
        (self.deployment.folder / "policy.toml").write_text(text)

    def call(self, caller: str, method: str, *messages: Any) -> list[bytes]:
        own = self.deployment.folder / "certificates" / caller.replace("/", "-")
        path = next(path for path in CALLERS if path.endswith(f"/{method}"))
        if not own.exists():
            return []
        if caller not in self.channels:
            connection = channel.connect(self.deployment.address, "compliance", identity.load(own))
            self.channels[caller] = self.running.enter_context(connection)
        data = [each if isinstance(each, bytes) else each.SerializeToString() for each in messages]
        got: list[bytes] = []
        try:
            got.extend(self.channels[caller].stream_stream(path)(iter(data), timeout=300))
        except grpc.RpcError as error:
            self.seen.append((error.code(), error.details(), audit_error_of(error)))  # type: ignore[attr-defined]
        self.seen.append((caller, method, *got))
        return got


WORTH = re.compile(
    rf"(INFO|WARNING) [\w-]+: (95% interval|metric |~ is |({'|'.join(METRICS)}) |whoever |budgets |.*balanced accuracy)"
)


def lines(log: str) -> list[object]:
    """Read a log, without the times of its lines."""
    calls = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    others = [re.sub(r"^[\d:T .,Z+-]+", "", line) for line in log.splitlines() if not line.startswith("{")]
    # What answers are worth is found out, and told, beside calls, as far as there is time; `tests/contract` has it.
    return [*({**call, "time": ""} for call in calls), *(line for line in others if not WORTH.match(line))]


def played(drawn: Drawn, number: int, folder: Path, address: str, leak: str) -> list[Any]:
    """Play one world in a folder, and leave its tape there; all that is seen of it."""
    deployment = Deployment(folder)
    deployment.address = address or deployment.address
    own = folder / "ledger" / "tape"
    deployment.service = ("-m", "tests.neighbours.service", str(folder.parent / "tape"), str(own), leak)
    deployment.environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    (folder / "people.csv").write_text(drawn.people[number])
    with ExitStack() as running:
        world = Remote(deployment, running)
        world.write(drawn.policy)
        world.start()
        for happen in drawn.events:
            happen(world)
    records = [replace(record, time=0.0, chain=b"", mac=b"") for record in inspect(world.ledger)[0].records]
    world.seen += [*lines(deployment.log), *records, *(public for public, _ in read(own))]
    return [deployment.address, *world.seen]


def first_difference(drawn: Drawn, folder: Path, leak: str = "") -> tuple[Any, Any] | None:
    """Play two worlds one after the other in the same place; what they show where they differ first."""
    place = folder / "world"
    place.mkdir(parents=True)
    here = played(drawn, 0, place, "", leak)
    shutil.move(place / "ledger" / "tape", folder / "tape")
    shutil.rmtree(place)
    place.mkdir()
    there = played(drawn, 1, place, here[0], leak)
    return next((pair for pair in zip_longest(here, there) if pair[0] != pair[1]), None)


@pytest.mark.parametrize(
    "seed",
    [pytest.param(seed, marks=pytest.mark.check if seed in (0, 5) else pytest.mark.slow) for seed in (0, 3, 5, 8)],
)
def test_neighbours_served_by_a_process_differ_in_nothing_but_noisy_numbers(seed: int, tmp_path: Path) -> None:
    assert first_difference(draw(seed), tmp_path) is None


@pytest.mark.slow
def test_a_process_that_leaks_is_found_out(tmp_path: Path) -> None:
    leak = "tables_cost_less_of_uneven_groups"
    write(tmp_path / "certificates", NAME, ["alice", "bob"], 1)
    drawn = next(each for each in map(draw, count()) if compared.first_difference(each, tmp_path, LEAKS[leak]))
    assert first_difference(drawn, tmp_path / "served", leak)
