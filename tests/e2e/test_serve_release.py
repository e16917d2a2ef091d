"""A deployment that sells sanitised attributes: real processes, real certificates, the documented example."""

from __future__ import annotations

import re
import shutil
import sys
import tomllib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import numpy as np
import pytest
import tomli_w

from compliance.ledger.entries import LedgerEntry
from compliance.ledger.place import inspect
from fairwall.client import AuditClient, AuditRefused, AuditUnavailable
from fairwall.compliance.v1 import release_service_pb2 as wire
from fairwall.compliance.v1.release_service_pb2_grpc import ReleaseServiceStub
from fairwall.rpc import channel, identity
from fairwall.rpc.errors import reason_of
from fairwall.wire.v1 import error_pb2
from sim.play.faults import Proxy
from sim.scenarios.scenario import InjectedFault
from tests.e2e.test_serve import (
    BY_HAND,
    DOCS,
    PREDICTIONS,
    Served,
    change,
    deployment,
    ended,
    refusal,
    serving,
    without_times,
)
from tests.support import forked_programs

PAGE = (DOCS / "serving.md").read_text()
PEOPLE = 240


def selling(folder: Path, **changes: object) -> Path:
    """The documented example with the release that the page adds to it, but for the changes."""
    deployment(folder, '["sp"]')  # it starts sooner
    shutil.copyfile(DOCS / "example" / "training.csv", folder / "training.csv")
    policy = tomllib.loads((folder / "policy.toml").read_text())
    for block in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL):
        added = tomllib.loads(block)
        if "data" in added:  # of another section
            continue
        policy["developers"].update(added.pop("developers", {}))
        policy.update(added)
    policy["release"].update(changes)
    (folder / "policy.toml").write_text(tomli_w.dumps(policy))
    return folder


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return selling(tmp_path)


def charged(folder: Path) -> list[tuple[str, str, float]]:
    """What was charged to the people whose attributes are released: to whom, for what, how much."""
    (found,) = inspect(folder / "ledger" / "ledger.sqlite")
    entries = [record for record in found.records if isinstance(record, LedgerEntry)]
    asked = [entry.request for entry in entries if entry.request.dataset == "loans-release"]
    return [(request.developer, request.request_id, request.loss.epsilon) for request in asked]


@pytest.mark.check
def test_the_documented_notebook_runs(own: Path) -> None:
    block = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[1]
    with serving(own) as running:
        command = [sys.executable, "-c", block.replace("127.0.0.1:7443", running.address)]
        first, again = (
            forked_programs.run(command, capture_output=True, text=True, cwd=own, timeout=300, check=False)
            for _ in range(2)
        )
    assert (first.returncode, first.stderr) == (0, "")
    terms, released, counts = first.stdout.splitlines()
    assert terms.startswith(
        "ReleaseTerms(people=240, protocol='grr', columns=(ReleasedColumn(name='region', values=('n"
    )
    assert released == ("Released(epsilons={'region': 1.0, 'group': 1.0}, epsilon_charged=2.0, epsilon_remaining=1.0)")
    assert again.stdout.splitlines()[1:] == [released, counts], "the same bits"
    assert "epsilon_remaining=1.0" in again.stdout.splitlines()[0]
    assert charged(own) == [("alice", "training-1", 2.0)]


def test_a_release_is_drawn_and_charged_once_and_another_request_buys_another_draw(own: Path) -> None:
    with serving(own) as running, running.client() as buyer:
        first = buyer.release(1.0, request_id="a")
        again = buyer.release(1.0, request_id="a")
        assert first.encoded.tobytes() == again.encoded.tobytes()
        assert first.encoded.shape == (PEOPLE, 6)
        assert first.encoded.dtype == np.uint8
        assert [(name, part.shape[1]) for name, part in first.columns.items()] == [("region", 4), ("group", 2)]
        assert all((part.sum(axis=1) == 1).all() for part in first.columns.values())
        assert buyer.release_terms().epsilon_remaining == 2.0
        assert refusal(lambda: buyer.release(0.5, request_id="a"))[0] == "REQUEST_ID_REUSED"
        other = buyer.release(1.0, request_id="b")
        assert other.encoded.tobytes() != first.encoded.tobytes()
        assert other.epsilon_remaining == buyer.release_terms().epsilon_remaining == 1.0
    assert charged(own) == [("alice", "a", 1.0), ("alice", "b", 1.0)]


@pytest.mark.check
def test_the_two_budgets_are_apart_and_ids_are_not(own: Path) -> None:
    with serving(own) as running, running.client() as alice:
        before = alice.terms()
        alice.release(3.0, request_id="all")
        assert alice.terms() == before
        assert refusal(lambda: alice.ask(PREDICTIONS, "sp", 0.5, request_id="all"))[0] == "REQUEST_ID_REUSED"
        alice.ask(PREDICTIONS, "sp", 0.5, request_id="audit")
        assert refusal(lambda: alice.release(3.0, request_id="audit"))[0] == "REQUEST_ID_REUSED"
        assert alice.release_terms().epsilon_remaining == 0.0


@pytest.mark.check
def test_what_does_not_fit_is_refused_in_one_line_and_not_charged(own: Path) -> None:
    with serving(own) as running, running.client() as alice, running.client("bob") as bob:
        with pytest.raises(AuditRefused, match=r"does not cover this batch: 3\.0 is left, 3\.5 is needed$") as caught:
            alice.release(3.5)
        assert (caught.value.epsilon_remaining, caught.value.epsilon_needed) == (3.0, 3.5)
        assert refusal(lambda: alice.release(1e-13))[0] == "EPSILON_INVALID"
        assert refusal(lambda: alice.release(1.0, request_id=""))[0] == "REQUEST_ID_INVALID"
        # The policy gives bob no share.
        assert (bob.release_terms().epsilon, bob.release_terms().epsilon_remaining) == (0.0, 0.0)
        assert refusal(lambda: bob.release(1e-3))[0] == "BUDGET_EXHAUSTED"
        for epsilon in (0.0, -1.0, float("nan"), float("inf")):
            with pytest.raises(ValueError, match="epsilon must be"):
                alice.release(epsilon)
        with running.client("carol") as carol:
            for call in (carol.release_terms, lambda: carol.release(1.0)):
                assert refusal(call)[0] == "CALLER_NOT_ALLOWED"
    assert charged(own) == []


def test_developers_together_cannot_exceed_what_the_people_may_lose(own: Path) -> None:
    policy = tomllib.loads((own / "policy.toml").read_text())
    policy["developers"]["bob"]["release"] = 3.0
    (own / "policy.toml").write_text(tomli_w.dumps(policy))
    with serving(own) as running, running.client() as alice, running.client("bob") as bob:
        alice.release(3.0, request_id="one")
        assert bob.release_terms().epsilon_remaining == 1.0
        assert refusal(lambda: bob.release(1.5))[0] == "BUDGET_EXHAUSTED"
        assert not np.array_equal(
            bob.release(1.0, request_id="one").encoded, alice.release(3.0, request_id="one").encoded
        )


@pytest.mark.check
def test_a_service_that_is_started_again_gives_the_same_bits(own: Path) -> None:
    with serving(own) as first, first.client() as buyer:
        bought = buyer.release(2.0, request_id="once")
        first.process.kill()
    with serving(own) as second, second.client() as buyer:
        assert buyer.release(2.0, request_id="once").encoded.tobytes() == bought.encoded.tobytes()
        assert buyer.release_terms().epsilon_remaining == 1.0
    assert charged(own) == [("alice", "once", 2.0)]


@pytest.mark.check
def test_a_service_that_is_set_up_anew_draws_anew(tmp_path: Path) -> None:
    drawn = set()
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        with serving(selling(tmp_path / name)) as running, running.client() as buyer:
            drawn.add(buyer.release(2.0, request_id="once").encoded.tobytes())
    assert len(drawn) == 2


@pytest.mark.check
def test_what_was_bought_on_other_terms_is_not_given_out(own: Path) -> None:
    with serving(own) as first, first.client() as buyer:
        buyer.release(1.0, request_id="once")
        assert first.end() == 0
    policy = tomllib.loads((own / "policy.toml").read_text())
    policy["release"]["columns"]["group"].append("c")
    (own / "policy.toml").write_text(tomli_w.dumps(policy))
    with serving(own) as second, second.client() as buyer:
        assert refusal(lambda: buyer.release(1.0, request_id="once"))[0] == "REQUEST_ID_REUSED"
        assert buyer.release(1.0, request_id="anew").encoded.shape == (PEOPLE, 7)


@pytest.mark.check
def test_a_client_whose_answer_is_lost_asks_again_and_pays_once(own: Path) -> None:
    with serving(own) as first, first.client() as buyer:
        buyer.release_terms()
        change(own, listen=first.address)
        assert first.end() == 0
        with ThreadPoolExecutor(1) as elsewhere:
            asked = elsewhere.submit(buyer.release, 1.0, request_id="once")
            with serving(own):
                bought = asked.result(30)
                assert buyer.release(1.0, request_id="once").encoded.tobytes() == bought.encoded.tobytes()
    assert charged(own) == [("alice", "once", 1.0)]


@pytest.mark.check
def test_a_release_whose_bytes_are_lost_on_their_way_is_paid_for_once_and_comes_again(own: Path) -> None:
    happened: list[str] = []
    with serving(own) as running:
        proxy = Proxy(running.address, lambda fault: happened.append(fault.kind))
        try:
            with AuditClient(proxy.address, own / "certificates" / "developer-alice") as buyer:
                buyer.release_terms()
                # Behind the terms, within the encodings: they were drawn, charged, and on their way.
                proxy.arm(
                    [InjectedFault(trial=1, kind="drop", link="developer-compliance", towards="client", after=1200)]
                )
                bought = buyer.release(1.0, request_id="once")
                assert happened == ["drop"]
                assert buyer.release(1.0, request_id="once").encoded.tobytes() == bought.encoded.tobytes()
        finally:
            proxy.close()
    assert charged(own) == [("alice", "once", 1.0)]
    assert running.log.count("released 2 columns") == 3, "given once more, to the client that had lost it"


@pytest.mark.check
def test_the_terms_refusals_and_logs_are_the_same_whoever_the_people_are(
    own: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    mirror = selling(tmp_path_factory.mktemp("mirror"))
    header, *rows = (mirror / "training.csv").read_text().splitlines()
    turned = [",".join({"a": "b", "b": "a"}.get(cell, cell) for cell in row.split(",")) for row in rows]
    (mirror / "training.csv").write_text("\n".join([header, *turned]) + "\n")
    told = []
    for folder in (own, mirror):
        with serving(folder) as running, running.client() as buyer:
            terms = buyer.release_terms()
            refused = [
                refusal(call)
                for call in (lambda buyer=buyer: buyer.release(9.0), lambda buyer=buyer: buyer.release(1e-13))
            ]  # type: ignore[misc]
            buyer.release(1.0)
        told.append((terms, refused, without_times(running.log)))
    assert told[0] == told[1]


def stub_of(running: Served) -> tuple[grpc.Channel, ReleaseServiceStub]:
    connection = channel.connect(
        running.address, "compliance", identity.load(running.folder / "certificates" / "developer-alice")
    )
    return connection, ReleaseServiceStub(connection)


@pytest.mark.check
def test_a_deployment_takes_no_model(own: Path) -> None:
    header = wire.HandModelRequest(header=wire.ModelHeader(deal_id="loans"))
    with serving(own) as running:
        connection, service = stub_of(running)
        with connection, pytest.raises(grpc.RpcError) as caught:
            service.HandModel(iter([header]), timeout=300)
    assert reason_of(caught.value) == error_pb2.REASON_NO_FEATURES


@pytest.mark.check
def test_a_deployment_that_releases_nothing_says_so(tmp_path: Path) -> None:
    with serving(deployment(tmp_path)) as running, running.client() as buyer:
        for call in (buyer.release_terms, lambda: buyer.release(1.0)):
            with pytest.raises(AuditUnavailable, match="UNIMPLEMENTED"):
                call()


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (
            lambda folder: selling(folder, columns={"group": ["a", "c"]}),
            "release.columns.group: some rows have a value",
        ),
        (lambda folder: selling(folder, source="nowhere.csv"), "nowhere.csv: no such file"),
    ],
)
def test_a_release_that_cannot_be_served_ends_the_service_in_one_line(
    tmp_path: Path, spoil: Callable[[Path], Path], why: str
) -> None:
    spoil(tmp_path)
    ended = forked_programs.run(
        [sys.executable, *BY_HAND, str(tmp_path / "policy.toml")],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    (said,) = [line for line in ended.stderr.splitlines() if "WARNING" not in line and " INFO " not in line]
    assert said.startswith("compliance: ")
    assert why in said


@pytest.mark.check
def test_numbers_are_released_as_numbers(tmp_path: Path) -> None:
    with serving(selling(tmp_path, protocol="the-server")) as running, running.client() as buyer:
        released = buyer.release(1.0, request_id="r")
        assert (released.encoded.dtype, released.encoded.shape) == (np.float64, (PEOPLE, 6))
        assert np.array_equal(buyer.release(1.0, request_id="r").encoded, released.encoded)


@pytest.mark.check
def test_released_people_have_one_budget_under_one_name(own: Path) -> None:
    with serving(own):
        pass
    rows = (own / "training.csv").read_text().splitlines()
    (own / "other.csv").write_text("\n".join(rows[:-1]) + "\n")
    text = (own / "policy.toml").read_text()
    (own / "policy.toml").write_text(text.replace("training.csv", "other.csv"))
    assert "data set loans-release: this name stands for other data" in ended(own)
    (own / "policy.toml").write_text(text.replace("[release]", '[release]\nname = "again"'))
    assert "data set again: these people's data are called loans-release" in ended(own)
