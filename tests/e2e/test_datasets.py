"""Several data sets in one service: each has its own budget, its own metrics and its own people who may ask."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from google.protobuf.message_factory import GetMessageClass

from compliance.ledger.entries import Admission
from compliance.ledger.place import inspect
from fairwall.client import AuditClient, AuditRefused
from fairwall.rpc import channel
from fairwall.rpc.access import CALLERS, SERVED_BY, SERVICES
from fairwall.rpc.identity import load
from sim.deployment.certificates import write
from tests.support import command, forked_programs

DOCS = Path(__file__).parents[2] / "docs"
SERVICE = ("-I", "-m", "compliance")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The documented example, on a port of the system's choice; counts start sooner than what is recommended."""
    for name in ("several.toml", "loans.csv", "training.csv"):
        shutil.copyfile(DOCS / "example" / name, tmp_path / name)
    policy = tmp_path / "several.toml"
    policy.write_text(policy.read_text().replace("127.0.0.1:7443", "127.0.0.1:0").replace("recommended", "counts"))
    write(tmp_path / "certificates", "loans", ("alice", "bob"), 1)
    return tmp_path


@contextmanager
def served(place: Path, service: tuple[str, ...] = SERVICE) -> Iterator[str]:
    with (
        (place / "log").open("a") as log,
        forked_programs.Popen(
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

UNKNOWN = "DEAL_UNKNOWN: no such deal is open: the service has no data set {!r}, or none that you may ask about"


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
        assert outcome(alice_there) == UNKNOWN.format("applications")
        assert outcome(nowhere) == UNKNOWN.format("nothing")
        with pytest.raises(AuditRefused, match="no data set 'applications', or none that you may ask about"):
            alice_there.terms()
        with pytest.raises(AuditRefused, match="no data set 'loans' with groups, or none that you may ask about"):
            alice.group_terms()
        # What is spent of one budget is not spent of the other; an id is good for one request of either.
        assert (bob.terms().epsilon_remaining, bob_there.terms().epsilon_remaining) == (1.5, 0.5)
        assert outcome(bob, request_id="once") == ""
        assert outcome(bob_there, request_id="once").startswith("REQUEST_ID_REUSED")
        assert outcome(bob_there) == ""
        assert outcome(bob_there).startswith("BUDGET_EXHAUSTED")
        assert outcome(bob) == ""
    (found,) = inspect(place / "ledger" / "ledger.sqlite")
    assert (found.books.standing("loans").spent, found.books.standing("applications").spent) == (2.0, 1.0)
    (admission,) = [each for each in found.records if isinstance(each, Admission)]
    assert [(each.dataset, each.developers, each.metrics) for each in admission.served] == [
        ("loans", ("alice", "bob"), ("sp", "eo")),
        ("applications", ("bob",), ("sp",)),
    ]


METHODS = sorted(
    method
    for method, callers in CALLERS.items()
    if "developer" in callers and SERVED_BY.get(method.rpartition("/")[0] + "/") == "compliance"
)
"""Every method of compliance's that a developer may call. Each is asked, also one that is added tomorrow."""


def heard(connection: grpc.Channel, method: str, deal: str) -> tuple[Any, ...]:
    """All that a caller hears of a request that names a data set and says nothing else."""
    service, _, name = method.strip("/").rpartition("/")
    (found,) = (each for each in SERVICES if each.full_name == service.strip("/"))
    message = GetMessageClass(found.methods_by_name[name].input_type)()
    fields = message.DESCRIPTOR.fields_by_name
    part = message.header if "header" in fields else message
    part.deal_id = deal  # a request that names none is unlike all others: say here how it is kept from strangers
    call = connection.stream_stream(
        method, request_serializer=type(message).SerializeToString, response_deserializer=bytes
    )(iter([message]), timeout=300)
    answered = []
    with suppress(grpc.RpcError):
        answered = list(call)
    told = [(each.key, each.value) for each in (*call.initial_metadata(), *call.trailing_metadata())]
    return answered, call.code(), call.details(), sorted(told)


def tellers(place: Path, service: tuple[str, ...] = SERVICE) -> tuple[set[str], set[str]]:
    """The methods that tell alice of a data set that is not hers, and those that tell bob of it, whose it is."""
    policy = place / "several.toml"
    policy.write_text(policy.read_text() + EVERYTHING)
    with served(place, service) as address, ExitStack() as opened:
        alice, bob = (
            opened.enter_context(
                channel.connect(address, "compliance", load(place / "certificates" / f"developer-{name}"))
            )
            for name in ("alice", "bob")
        )
        return tuple(
            {method for method in METHODS if heard(who, method, "applications") != heard(who, method, "nothing")}
            for who in (alice, bob)
        )


EVERYTHING = """
[datasets.applications.data.groups]
region = ["north", "east", "south", "west"]
[datasets.applications.release]
source = "training.csv"
protocol = "grr"
epsilon = 1.0
[datasets.applications.release.columns]
region = ["north", "east", "south", "west"]
"""

NOT_DEPLOYED = {"SumByGroup", "Tabulate"}
"""Methods that games have alone."""


@pytest.mark.check
def test_no_method_tells_a_developer_of_a_data_set_of_others(place: Path) -> None:
    told_alice, told_bob = tellers(place)
    assert told_alice == set()
    assert {method.rpartition("/")[2] for method in set(METHODS) - told_bob} == NOT_DEPLOYED


ANSWERS_WHOEVER_IS_LET_IN = """
from compliance.answers import audit_service as service
from compliance.__main__ import main
service.check_developer = lambda *_: None
main()
"""

HANDS_MODELS_TO_ANYBODY = """
from compliance.answers import release_service
from compliance.__main__ import main
hand = release_service.ReleaseService.HandModel
def anybodys(self, requests, context):
    checked, release_service.opened = release_service.opened, lambda cases, deal, _: cases[deal]
    try:
        return hand(self, requests, context)
    finally:
        release_service.opened = checked
release_service.ReleaseService.HandModel = anybodys
main()
"""


@pytest.mark.slow(seconds=7)
@pytest.mark.parametrize("service", [ANSWERS_WHOEVER_IS_LET_IN, HANDS_MODELS_TO_ANYBODY])
def test_a_service_that_tells_developers_of_data_sets_of_others_is_caught(place: Path, service: str) -> None:
    assert tellers(place, ("-c", service))[0]


@pytest.mark.check
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
    refused = command.fairwall(
        "deploy", "certificates", "add", "dora", "--policy", "several.toml", "--epsilon", "1", cwd=place
    )
    assert (refused.returncode, refused.stderr) == (
        2,
        "fairwall: --dataset: several.toml serves loans and applications: choose one\n",
    )
    again = command.fairwall(*shlex.split(lines[0], comments=True)[1:], cwd=place)
    assert (again.returncode, again.stderr) == (
        2,
        "fairwall: several.toml: datasets.applications.developers.carol: is there already\n",
    )


@pytest.mark.check
def test_the_same_people_under_two_names_are_not_served(place: Path) -> None:
    policy = place / "several.toml"
    text = policy.read_text().replace("training.csv", "copy.csv").replace('advantaged = "a"', 'advantaged = "b"', 1)
    policy.write_text(text)
    first, *rows = (place / "loans.csv").read_text().splitlines()
    moved = [",".join(["ba"[number % 3 == 0], *row.split(",")[1:]]) for number, row in enumerate(rows)]
    (place / "copy.csv").write_text("\n".join([first, *moved[::-1]]) + "\n")
    done = forked_programs.run(
        [sys.executable, *SERVICE, "--policy", str(policy)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 2
    assert "data set applications: these people's data are called loans, and have one budget" in done.stderr
    assert not (place / "ledger").exists(), "nothing was begun"
