"""Several data sets in one service: each has its own budget, its own metrics and its own people who may ask."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from compliance.ledger.books import Admission
from compliance.ledger.file import inspect
from fairwall.client import AuditClient, AuditRefused
from sim.deployment.certificates import write
from tests import command

DOCS = Path(__file__).parents[2] / "docs"
SERVICE = ("-I", "-m", "compliance")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The documented example, on a port of the system's choice."""
    for name in ("several.toml", "loans.csv", "training.csv"):
        shutil.copyfile(DOCS / "example" / name, tmp_path / name)
    policy = tmp_path / "several.toml"
    policy.write_text(policy.read_text().replace("127.0.0.1:7443", "127.0.0.1:0"))
    write(tmp_path / "certificates", "loans", ("alice", "bob"), 1)
    return tmp_path


@contextmanager
def served(place: Path, service: tuple[str, ...] = SERVICE) -> Iterator[str]:
    with (
        (place / "log").open("a") as log,
        subprocess.Popen(
            [sys.executable, *service, "--policy", str(place / "several.toml")],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, (place / "log").read_text()
            yield json.loads(line)["address"]
        finally:
            process.kill()


def client(place: Path, address: str, name: str, data: str | None = None) -> AuditClient:
    return AuditClient(address, place / "certificates" / f"developer-{name}", data=data)


def outcome(audits: AuditClient, metric: str = "sp", request_id: str | None = None) -> str:
    """Why a question is refused, all that is said of it; empty if it is answered."""
    try:
        predictions = np.linspace(0, 1, PEOPLE.get(audits._data, 3000))
        audits.ask(predictions, metric, 0.5, request_id=request_id)
    except AuditRefused as refused:
        return f"{refused.reason}: {refused}"
    return ""


PEOPLE = {"loans": 3000, "applications": 240}

UNKNOWN = "DEAL_UNKNOWN: no such deal is open"


def test_each_data_set_has_its_own_budget_metrics_and_developers(place: Path) -> None:
    policy = place / "several.toml"
    policy.write_text(policy.read_text().replace('"recommended"', '"counts"'))  # which charges every batch
    with (
        served(place) as address,
        client(place, address, "alice") as alice,
        client(place, address, "bob") as bob,
        client(place, address, "bob", "applications") as bob_there,
        client(place, address, "alice", "applications") as alice_there,
        client(place, address, "alice", "nothing") as nowhere,
    ):
        assert (bob.terms().metrics, bob_there.terms().metrics) == (("sp", "eo"), ("sp",))
        assert (outcome(alice), outcome(bob, "eo"), outcome(bob_there)) == ("", "", "")
        assert outcome(bob_there, "eo").startswith("METRIC_NOT_ALLOWED")
        # Whom a data set is not for hears what anybody hears of one that is not there.
        assert outcome(alice_there) == outcome(nowhere) == UNKNOWN
        with pytest.raises(AuditRefused, match="no such deal"):
            alice_there.terms()
        # What is spent of one budget is not spent of the other; an id is good for one request of either.
        assert (bob.terms().epsilon_remaining, bob_there.terms().epsilon_remaining) == (1.5, 0.5)
        assert outcome(bob, request_id="once") == ""
        assert outcome(bob_there, request_id="once").startswith("REQUEST_ID_REUSED")
        assert outcome(bob_there) == ""
        assert outcome(bob_there).startswith("BUDGET_EXHAUSTED")
        assert outcome(bob) == ""
    found = inspect(place / "ledger" / "ledger.sqlite")
    assert (found.books.standing("loans").spent, found.books.standing("applications").spent) == (2.0, 1.0)
    (admission,) = [each for each in found.records if isinstance(each, Admission)]
    assert [(each.dataset, each.developers, each.metrics) for each in admission.served] == [
        ("loans", ("alice", "bob"), ("sp", "eo")),
        ("applications", ("bob",), ("sp",)),
    ]


ANSWERS_WHOEVER_IS_LET_IN = """
from compliance import service
from compliance.__main__ import main
service.check_developer = lambda *_: None
main()
"""


@pytest.mark.slow
def test_a_service_that_tells_every_developer_of_every_data_set_is_caught(place: Path) -> None:
    with (
        served(place, ("-c", ANSWERS_WHOEVER_IS_LET_IN)) as address,
        client(place, address, "alice", "applications") as alice,
    ):
        assert outcome(alice) != UNKNOWN


def test_the_documented_commands_take_a_developer_into_a_data_set(place: Path) -> None:
    text = (DOCS / "serving.md").read_text().split("### Several data sets")[1]
    lines = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)[0].splitlines()
    printed = []
    with served(place) as address:
        for line in lines:
            done = command.fairwall(*shlex.split(line, comments=True)[1:], cwd=place)
            assert done.returncode == 0, done.stderr
            printed.append(done.stdout.splitlines())
        with client(place, address, "carol", "applications") as there, client(place, address, "carol") as here:
            assert (outcome(there), outcome(here)) == ("", "")
    assert [len(each) for each in printed] == [2, 1], "the second issues no certificate"
    refused = command.fairwall("certificates", "add", "dora", "--policy", "several.toml", "--epsilon", "1", cwd=place)
    assert (refused.returncode, refused.stderr) == (
        2,
        "fairwall: --data: several.toml serves loans and applications: choose one\n",
    )
    again = command.fairwall(*shlex.split(lines[0], comments=True)[1:], cwd=place)
    assert (again.returncode, again.stderr) == (
        2,
        "fairwall: several.toml: datasets.applications.developers.carol: is there already\n",
    )


def test_the_same_people_under_two_names_are_not_served(place: Path) -> None:
    policy = place / "several.toml"
    policy.write_text(policy.read_text().replace("training.csv", "loans.csv"))
    done = subprocess.run(
        [sys.executable, *SERVICE, "--policy", str(policy)], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 2
    assert "data set applications: these people's data are called loans" in done.stderr
    assert inspect(place / "ledger" / "ledger.sqlite").records == ()
