"""A deployment as its operator and its developers see it: real processes, real certificates, the documented example."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil
import pytest

from compliance.ledger.entries import LedgerEntry
from compliance.ledger.place import inspect
from fairwall.client import AuditClient, AuditRefused, AuditUnavailable
from sim.deployment.certificates import authority_of, renew, write
from tests.support import forked_programs

DOCS = Path(__file__).parents[2] / "docs"
BY_HAND = ("-I", "-m", "compliance", "--policy")
BY_COMMAND = ("-m", "sim", "deploy", "serve", "--policy")

PREDICTIONS = np.linspace(0, 1, 200)


@dataclass(frozen=True)
class Served:
    """A deployment that is being served: its process, its address, its folder and its log."""

    process: subprocess.Popen[str]
    address: str
    folder: Path

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def said(self, pattern: str) -> str:
        """Wait until the log has a line, and what follows on it; what a service finds out, it says behind answers."""
        give_up = time.monotonic() + 300
        while not (found := re.search(pattern, self.log, re.MULTILINE)):
            assert time.monotonic() < give_up
            time.sleep(0.05)
        return found.string[found.start() :]

    def client(self, name: str = "alice") -> AuditClient:
        return AuditClient(self.address, self.folder / "certificates" / f"developer-{name}")

    def end(self) -> int:
        """Ctrl-C; the exit status."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(300)


def deployment(folder: Path, metrics: str = '["sp", "eo"]', **changes: str) -> Path:
    """The documented example in a folder of its own, on a port of the system's choice, but for the changes.

    It has fewer people, and answers with counts, which charge every batch. Its rows have no ids, so that predictions
    may be made up in the order of the file; test_rows.py is about ids.
    """
    rows = (DOCS / "example" / "loans.csv").read_text().splitlines(keepends=True)
    (folder / "loans.csv").write_text("".join(rows[: 1 + PREDICTIONS.size]))
    text = (DOCS / "example" / "policy.toml").read_text()
    text = text.replace('"recommended"', '"counts"').replace('["sp", "eo"]', metrics)
    (folder / "policy.toml").write_text(re.sub(r"(?m)^(id|public) = .*\n", "", text))
    write(folder / "certificates", "loans", ("alice", "bob", "carol"), 1)
    change(folder, listen="127.0.0.1:0", **changes)
    return folder


def change(folder: Path, **changes: str) -> None:
    """Set keys of a policy to other strings."""
    policy = folder / "policy.toml"
    text = policy.read_text()
    for key, value in changes.items():
        text, found = re.subn(rf'(?m)^{key} = "[^"]*"', f'{key} = "{value}"', text)
        assert found == 1, key
    policy.write_text(text)


@contextlib.contextmanager
def serving(
    folder: Path, command: tuple[str, ...] = BY_HAND, popen: type[subprocess.Popen[str]] = forked_programs.Popen
) -> Iterator[Served]:
    """Serve the deployment in a folder, once it says where."""
    with (folder / "log").open("a") as log:
        process = popen(
            [sys.executable, *command, str(folder / "policy.toml")],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=folder,
        )
    with process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, (folder / "log").read_text()
            yield Served(process, json.loads(line)["address"], folder)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One deployment for the tests that leave its budget as they find it."""
    with serving(deployment(tmp_path_factory.mktemp("loans"))) as running:
        yield running


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """With one metric: it starts sooner."""
    return deployment(tmp_path, '["sp"]')


def refusal(call: Callable[[], object]) -> tuple[str, str]:
    """The reason and the text of a refusal."""
    with pytest.raises(AuditRefused) as caught:
        call()
    return caught.value.reason, str(caught.value)


@pytest.mark.check
def test_fairwall_serve_is_the_service_itself_and_ctrl_c_leaves_nobody(own: Path) -> None:
    with serving(own, BY_COMMAND, subprocess.Popen) as running, running.client() as audits:
        process = psutil.Process(running.process.pid)
        assert process.cmdline()[1:] == [*BY_HAND, str(own / "policy.toml")]
        (log,) = process.children()  # which writes lines about failed handshakes
        assert log.cmdline()[1:] == ["-I", "-m", "fairwall.rpc.handshakes"]
        assert "PRIVATE KEY" not in " ".join([*process.cmdline(), *process.environ().values()])
        assert audits.terms().people == 200
        assert running.end() == 0
        assert not log.is_running()
    assert "SIGINT: leaving" in running.log
    assert "Traceback" not in running.log


@pytest.mark.few(1)
@pytest.mark.parametrize("command", [BY_HAND, BY_COMMAND], ids=["by hand", "by command"])
def test_a_policy_that_cannot_be_served_is_one_line_and_status_2(own: Path, command: tuple[str, ...]) -> None:
    change(own, mechanism="exact")
    ended = subprocess.run(
        [sys.executable, *command, str(own / "policy.toml")], capture_output=True, text=True, timeout=300, check=False
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert re.fullmatch(r"compliance: .*policy\.toml: audit\.mechanism: must be one of .*\n", ended.stderr)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda folder: (folder / "certificates/compliance/key.pem").chmod(0o644), "chmod 600 it"),
        (lambda folder: change(folder, credentials="certificates/developer-bob"), "for developer of loans, not for"),
        (lambda folder: change(folder, credentials="nowhere"), "authority.pem: cannot be read"),
        (lambda folder: change(folder, source="none.csv"), "none.csv: no such file"),
        (lambda folder: change(folder, protected="race"), "no column 'race'"),
        (lambda folder: change(folder, listen="nowhere.invalid:1"), "cannot listen on nowhere.invalid:1: the host's"),
    ],
)
def test_what_cannot_be_used_ends_the_service_in_one_line(own: Path, spoil: Callable[[Path], Any], why: str) -> None:
    spoil(own)
    ended = forked_programs.run(
        [sys.executable, *BY_HAND, str(own / "policy.toml")], capture_output=True, text=True, timeout=300, check=False
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    said = [line for line in ended.stderr.splitlines() if "compliance: " in line]
    assert len(said) == 1
    assert said[0].startswith("compliance: ")
    assert why in said[0]


@pytest.mark.check
def test_a_port_that_is_taken_ends_the_service_in_one_line(own: Path, served: Served) -> None:
    change(own, listen=served.address)
    ended = forked_programs.run(
        [sys.executable, *BY_HAND, str(own / "policy.toml")], capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.returncode == 2
    assert (
        f"compliance: cannot listen on {served.address}: the address is in use: another process listens" in ended.stderr
    )


def test_a_developer_asks_and_the_same_request_is_charged_once(tmp_path: Path) -> None:
    with serving(deployment(tmp_path)) as running, running.client() as audits:
        before = audits.terms()
        answer = audits.ask(np.stack([PREDICTIONS, 1 - PREDICTIONS]), "sp", 0.5, request_id="first")
        again = audits.ask(np.stack([PREDICTIONS, 1 - PREDICTIONS]), "sp", 0.5, request_id="first")
        assert answer.gaps.shape == (2,)
        assert np.array_equal(answer.gaps, again.gaps)
        assert answer.epsilon_charged == 0.5
        assert audits.terms().epsilon_remaining == pytest.approx(before.epsilon_remaining - 0.5)
        assert refusal(lambda: audits.ask(PREDICTIONS, "eo", 0.5, request_id="first"))[0] == "REQUEST_ID_REUSED"
        # Another request, another draw.
        assert not np.array_equal(audits.ask(PREDICTIONS, "sp", 0.5).gaps, audits.ask(PREDICTIONS, "sp", 0.5).gaps)


BAD: dict[str, tuple[Callable[[AuditClient], object], str]] = {
    "too few people": (lambda audits: audits.ask(PREDICTIONS[:-1], "sp", 0.5), "PREDICTIONS_SHAPE"),
    "too many models": (lambda audits: audits.ask(np.zeros((21, 200)), "sp", 0.5), "QUERIES_OUT_OF_RANGE"),
    "a metric that is not allowed": (lambda audits: audits.ask(PREDICTIONS, "abs_sp", 0.5), "METRIC_NOT_ALLOWED"),
    "more than all": (lambda audits: audits.ask(PREDICTIONS, "sp", 1e6), "BUDGET_EXHAUSTED|EPSILON_INVALID"),
    "next to nothing": (lambda audits: audits.ask(PREDICTIONS, "sp", 9.9e-4), "EPSILON_INVALID"),
    "no request id": (lambda audits: audits.ask(PREDICTIONS, "sp", 0.5, request_id=""), "REQUEST_ID_INVALID"),
}


@pytest.mark.check
def test_bad_requests_are_refused_alike_whatever_the_protected_attributes_and_cost_nothing(
    served: Served, tmp_path: Path
) -> None:
    own = deployment(tmp_path)
    text = (own / "loans.csv").read_text()
    (own / "loans.csv").write_text(re.sub(r"(?m)^[ab],", lambda m: {"a,": "b,", "b,": "a,"}[m[0]], text))
    with serving(own) as flipped, served.client("bob") as here, flipped.client("bob") as there:
        before = here.terms()
        for what, (ask, reason) in BAD.items():
            texts = {refusal(lambda audits=audits, ask=ask: ask(audits)) for audits in (here, there)}  # type: ignore[misc]
            assert len(texts) == 1, what
            assert re.fullmatch(reason, texts.pop()[0]), what
        assert here.terms() == there.terms() == before
        assert without_times(flipped.log) <= without_times(served.log)


REFUSED: dict[str, tuple[Callable[[AuditClient], object], str, dict[str, float]]] = {
    "too few people": (
        lambda audits: audits.ask(PREDICTIONS[:-1], "sp", 0.5),
        "predictions have one row a model and one column a person of the test set: it has 200 people",
        {"people": 200},
    ),
    "people as rows": (
        lambda audits: audits.ask(np.tile(PREDICTIONS, (3, 1)).T, "sp", 0.5),
        "predictions have one row a model and one column a person of the test set: it has 200 people",
        {"people": 200},
    ),
    "too many models": (
        lambda audits: audits.ask(np.zeros((21, 200)), "sp", 0.5),
        "a batch has at least one model and no more than the policy allows: at most 20 models",
        {"queries_max": 20},
    ),
    "too much for a batch": (
        lambda audits: audits.ask(PREDICTIONS, "sp", 2.5),
        "epsilon is a number of at least 1e-12, and within what the policy allows a batch: at least 0.001, at most 2.0",
        {"epsilon_min": 0.001, "epsilon_max": 2.0},
    ),
    "more than is left": (
        lambda audits: audits.ask(PREDICTIONS, "sp", 1.2),
        "the remaining privacy budget does not cover this batch: 0.9 is left, 1.2 is needed",
        {"epsilon_remaining": 0.9, "epsilon_needed": 1.2},
    ),
    "an empty id": (
        lambda audits: audits.ask(PREDICTIONS, "sp", 0.5, request_id=""),
        "a request id is 1 to 64 printable ASCII characters",
        {},
    ),
}


@pytest.mark.check
def test_a_refused_developer_is_told_in_one_line_what_would_have_been_right(own: Path) -> None:
    numbers = ("people", "queries_max", "epsilon_min", "epsilon_max", "epsilon_remaining", "epsilon_needed")
    with serving(own) as running, running.client("bob") as audits:
        assert audits.terms().epsilon_max == 2.0
        audits.ask(PREDICTIONS, "sp", 1.1)
        for what, (ask, line, told) in REFUSED.items():
            with pytest.raises(AuditRefused) as caught:
                ask(audits)
            assert str(caught.value) == line, what
            assert {name: getattr(caught.value, name) for name in numbers} == {**dict.fromkeys(numbers), **told}, what
        assert audits.terms().epsilon_remaining == 0.9


@pytest.mark.check
def test_a_repeat_tells_what_is_left_now(own: Path) -> None:
    with serving(own) as running, running.client("bob") as audits:
        first = audits.ask(PREDICTIONS, "sp", 0.5, request_id="first")
        audits.ask(PREDICTIONS, "sp", 0.6)
        again = audits.ask(PREDICTIONS, "sp", 0.5, request_id="first")
        assert (first.epsilon_remaining, first.epsilon_remaining_now) == (1.5, 1.5)
        assert (again.epsilon_remaining, again.epsilon_remaining_now) == (1.5, 0.9)


@pytest.mark.check
def test_ten_tenths_of_an_epsilon_are_one_epsilon(own: Path) -> None:
    with serving(own) as running, running.client("bob") as audits:
        audits.ask(PREDICTIONS, "sp", 1.0)
        for _ in range(10):
            answer = audits.ask(PREDICTIONS, "sp", 0.1)
        assert answer.epsilon_remaining == 0.0
        assert refusal(lambda: audits.ask(PREDICTIONS, "sp", 1e-3))[0] == "BUDGET_EXHAUSTED"


def without_times(log: str) -> set[str]:
    return {
        re.sub(r'^\{"time": "[^"]*"|^\d\S+ \S+ |"request": "[0-9a-f]{32}"|/\S+/', "", line) for line in log.splitlines()
    }


@pytest.mark.parametrize(
    ("predictions", "metric", "epsilon", "why"),
    [
        ([], "sp", 0.5, "shape"),
        (np.zeros((1, 1, 200)), "sp", 0.5, "shape"),
        (PREDICTIONS * 2, "sp", 0.5, r"in \[0, 1\]"),
        ([float("nan")] * 200, "sp", 0.5, r"in \[0, 1\]"),
        (np.stack([1 - PREDICTIONS, PREDICTIONS], axis=1), "sp", 0.5, r"predict_proba\(X\)\[:, 1\]"),
        (PREDICTIONS[:, np.newaxis], "sp", 0.5, r"\(200, 1\) are not .* pass the one column as a row"),
        (pd.DataFrame(dict.fromkeys("abc", PREDICTIONS)), "sp", 0.5, r"\(200, 3\) are not .* frame\.T"),
        (PREDICTIONS, "ps", 0.5, "unknown metric 'ps'"),
        (PREDICTIONS, "sp", 0.0, "epsilon must be"),
        (PREDICTIONS, "sp", float("inf"), "epsilon must be"),
    ],
)
def test_what_cannot_be_asked_is_not_sent(
    served: Served, predictions: Any, metric: str, epsilon: float, why: str
) -> None:
    before = served.log
    with served.client() as audits, pytest.raises(ValueError, match=why):
        audits.ask(predictions, metric, epsilon)
    assert served.log.count("AuditService/Audit") == before.count("AuditService/Audit")  # terms are looked at


@pytest.mark.check
def test_a_column_or_a_frame_that_is_turned_over_is_what_was_meant(own: Path) -> None:
    frame = pd.DataFrame(dict.fromkeys("abc", PREDICTIONS))
    with serving(own) as running, running.client() as audits:
        assert audits.ask(frame["a"], "sp", 0.1).gaps.shape == (1,)
        assert audits.ask(frame.T, "sp", 0.1).gaps.shape == (3,)


@pytest.mark.check
def test_the_budget_holds_for_all_developers_together(own: Path) -> None:
    with serving(own) as running, running.client("alice") as alice, running.client("bob") as bob:
        alice.ask(PREDICTIONS, "sp", 2.0)
        bob.ask(PREDICTIONS, "sp", 2.0)
        for audits in (alice, bob):
            assert refusal(lambda audits=audits: audits.ask(PREDICTIONS, "sp", 0.5))[0] == "BUDGET_EXHAUSTED"  # type: ignore[misc]


@pytest.mark.check
def test_a_developer_has_no_more_than_its_share(own: Path) -> None:
    with serving(own) as running, running.client("bob") as bob:
        bob.ask(PREDICTIONS, "sp", 2.0)
        assert refusal(lambda: bob.ask(PREDICTIONS, "sp", 0.5))[0] == "BUDGET_EXHAUSTED"


@pytest.mark.parametrize("epsilon", [1e-12, 0.0009, 2.5])
def test_a_batch_has_no_less_and_no_more_than_the_policy_allows(served: Served, epsilon: float) -> None:
    with served.client() as alice:
        assert refusal(lambda: alice.ask(PREDICTIONS, "sp", epsilon))[0] == "EPSILON_INVALID"


def test_a_developer_whom_the_policy_does_not_name_is_refused(served: Served) -> None:
    with served.client("carol") as carol:
        for call in (carol.terms, lambda: carol.ask(PREDICTIONS, "sp", 0.5)):
            assert refusal(call) == ("CALLER_NOT_ALLOWED", "this party may not call this method")


def test_a_certificate_of_another_authority_gets_no_answer(served: Served, tmp_path: Path) -> None:
    stranger = write(tmp_path / "certificates", "loans", ("alice",), 1)[1]
    with AuditClient(served.address, stranger) as audits, pytest.raises(AuditUnavailable, match="certificate"):
        audits.terms()


def calls(folder: Path) -> list[dict[str, Any]]:
    """What a service's log says of calls, but for the times."""
    lines = [line for line in (folder / "log").read_text().splitlines() if line.startswith("{")]
    return [{key: value for key, value in json.loads(line).items() if key != "time"} for line in lines]


@pytest.mark.check
def test_the_log_says_of_each_call_who_asked_what_and_at_what_cost(tmp_path: Path) -> None:
    own = deployment(tmp_path)
    with serving(own) as running, running.client() as alice, running.client("carol") as carol:
        alice.ask(PREDICTIONS, "sp", 0.5, request_id="once")
        alice.ask(PREDICTIONS, "sp", 0.5, request_id="once")
        refusal(lambda: alice.ask(PREDICTIONS, "sp", 0.25, request_id="once"))
        refusal(lambda: alice.ask(PREDICTIONS, "sp", 1e-4, request_id="little"))
        alice.terms()
        refusal(carol.terms)
        running.process.send_signal(signal.SIGHUP)
        alice.terms()  # the service goes on
        while "SIGHUP" not in running.log:
            time.sleep(0.01)
        assert running.end() == 0
    assert "SIGHUP: loans: metrics sp, eo" in running.log
    audit, terms = (f"fairwall.compliance.v1.AuditService/{method}" for method in ("Audit", "GetTerms"))
    once = {"caller": "developer/alice", "method": audit, "dataset": "loans", "request": "once"}
    told = {"caller": "developer/alice", "method": terms, "outcome": "answered", "dataset": "loans"}
    assert calls(own) == [
        {**once, "outcome": "answered", "cost": 0.5},
        {**once, "outcome": "answered", "cost": 0.0},
        {**once, "outcome": "refused", "cost": 0.0, "reason": "REQUEST_ID_REUSED"},
        {**once, "request": "little", "outcome": "refused", "reason": "EPSILON_INVALID"},
        told,
        {"caller": "developer/carol", "method": terms, "outcome": "refused", "reason": "CALLER_NOT_ALLOWED"},
        told,
    ]


@pytest.mark.check
def test_a_developer_has_no_more_of_the_service_than_its_share_of_a_day(own: Path) -> None:
    policy = own / "policy.toml"
    policy.write_text(policy.read_text() + "calls_a_day = 3\n\n[developers.carol]\nepsilon = 1.0\nbytes_a_day = 2000\n")
    with serving(own) as running, running.client() as alice, running.client("bob") as bob:
        for _ in range(3):
            bob.terms()
        assert refusal(bob.terms)[0] == "QUOTA_EXHAUSTED"
        for _ in range(4):
            alice.terms()
        with running.client("carol") as carol:
            # 1,600 bytes and a little as float64, of which they take 25 on their way.
            answer = carol.ask(PREDICTIONS, "sp", 0.5, request_id="first")
            assert answer.epsilon_charged == 0.5
            assert refusal(lambda: carol.ask(PREDICTIONS, "sp", 0.5))[0] == "QUOTA_EXHAUSTED"
            assert refusal(carol.terms)[0] == "QUOTA_EXHAUSTED"
    (found,) = inspect(own / "ledger" / "ledger.sqlite")
    assert found.books.standing("loans").spent == 0.5


@pytest.mark.check
def test_new_answers_are_bounded_whatever_they_cost_by_whichever_certificate_and_after_a_restart(own: Path) -> None:
    change(own, mechanism="randomized-response")
    policy = own / "policy.toml"
    policy.write_text(policy.read_text() + "answers_a_day = 4\n")
    scores = np.random.default_rng(0).random((30, PREDICTIONS.size))

    def reasons(audits: AuditClient) -> list[str]:
        """Why further questions, all of them free, are refused: each under the same id whoever asks."""
        told = []
        for number, row in enumerate(scores):
            try:
                audits.ask(row, "sp", 0.002, request_id=f"free {number}")
                told.append("")
            except AuditRefused as refused:
                told.append(refused.reason)
        return told

    expected = {"alice": ["QUOTA_EXHAUSTED"] * 26, "bob": ["QUOTA_EXHAUSTED"] * 27}
    with serving(own) as running, running.client() as alice, running.client("bob") as bob:
        for audits, name, epsilon in ((alice, "alice", 0.005), (bob, "bob", 1.0)):
            audits.ask(scores[0], "sp", epsilon, request_id="paid")
            expected[name] = [""] * (30 - len(expected[name])) + expected[name]
            assert reasons(audits) == expected[name]
            assert audits.terms().epsilon_remaining == pytest.approx({"alice": 3.0, "bob": 2.0}[name] - epsilon)
    renew(
        own / "certificates",
        "bob",
        1,
        authority_of(*(own / f"certificates/authority/{each}.pem" for each in ("authority", "key"))),
    )
    with serving(own) as running, running.client() as alice, running.client("bob") as bob:
        assert [reasons(alice), reasons(bob)] == [expected["alice"], expected["bob"]]
        assert refusal(lambda: bob.ask(scores[0], "sp", 0.5))[0] == "QUOTA_EXHAUSTED"
        alice.ask(scores[0], "sp", 0.01)
    entries = inspect(own / "ledger" / "ledger.sqlite")[0].records
    assert sum(isinstance(each, LedgerEntry) for each in entries) == 10


@pytest.mark.check
def test_an_answer_takes_as_long_as_the_policy_says(own: Path) -> None:
    policy = own / "policy.toml"
    policy.write_text(policy.read_text().replace("[audit]", "[audit]\nanswer_seconds = 0.3"))
    with serving(own) as running, running.client() as audits:
        for _ in range(2):
            began = time.monotonic()
            audits.ask(PREDICTIONS, "sp", 0.5, request_id="once")
            assert time.monotonic() - began >= 0.3


def test_what_an_answer_will_be_worth_is_told_before_anything_is_spent(served: Served) -> None:
    with served.client("alice") as audits:
        before = audits.terms()
        one, twenty = (audits.expected_error("sp", models, 1.0) for models in (1, 20))
        assert one.error < twenty.error
        assert one.error < one.midpoint_error
        assert 0 < one.half_width <= 1
        assert audits.expected_error("sp", 1, 1.0) == one
        for asked, why in (
            (("sp", 1, 4.0), "EPSILON_INVALID"),
            (("fpr", 1, 1.0), "METRIC_NOT_ALLOWED"),
            (("sp", 21, 1.0), "QUERIES_OUT_OF_RANGE"),
        ):
            assert refusal(partial(audits.expected_error, *asked))[0] == why
        for metric, models in (("none", 1), ("sp", 0)):
            with pytest.raises(ValueError, match=r"metric|model"):
                audits.expected_error(metric, models, 1.0)
        assert audits.terms() == before


@pytest.mark.check
def test_what_a_batch_gives_away_is_told_before_it_is_asked(own: Path) -> None:
    policy = own / "policy.toml"
    policy.write_text(policy.read_text().replace("[audit]", "[audit]\nreveal_max = 0.58"))
    for mechanism, limit in ("counts", None), ("recommended", 0.58):
        change(own, mechanism=mechanism)
        with serving(own) as running, running.client() as audits:
            terms, expected = audits.terms(), audits.expected_error("sp", 5, 1.0)
            assert terms.reveal_max == limit
            most = "58%" if limit else f"{100 / (1 + math.exp(-2 * terms.epsilon_max)):.3g}%"
            assert f"has a balanced accuracy of at most {most}, the mean of the shares of both groups" in terms.privacy
            assert "where both have at least 20 people" in terms.privacy
            assert ("Where no mechanism stays within that" in terms.privacy) == (limit is not None)
            assert 0.5 < expected.revealed <= (limit or 1 / (1 + math.exp(-1.0)))
            assert math.e / 1000 < expected.person_risk <= expected.person_risk_most == pytest.approx(math.e**2 / 1000)


def test_what_a_whole_budget_gives_away_is_told(served: Served) -> None:
    with served.client() as audits:
        terms = audits.terms()
    told = terms.budget
    assert told is not None
    assert 0.5 < told.revealed < told.revealed_together < told.revealed_most < 1
    assert list(told.kept) == [0.6, 0.7, 0.8]
    assert list(told.kept.values()) == sorted(told.kept.values())
    assert (
        f"so has at most {100 * told.revealed:.3g}%, and {100 * told.revealed_together:.3g}% with that of all"
        in terms.privacy
    )
    assert f"nobody has more than {100 * told.revealed_most:.3g}% with the whole budget" in terms.privacy


@pytest.mark.check
def test_a_budget_that_reveals_too_much_is_not_served_unless_told(own: Path) -> None:
    change(own, mechanism="counts")
    policy = own / "policy.toml"
    policy.write_text(policy.read_text().replace("[audit]", "[audit]\nreveal_total = 0.52"))
    ended = forked_programs.run(
        [sys.executable, *BY_HAND, str(policy)], capture_output=True, text=True, timeout=300, check=False
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "audit.reveal_total: a budget of epsilon 4 gives away" in ended.stderr.splitlines()[-1]
    assert not (own / "ledger" / "ledger.sqlite").exists()
    with serving(own, (*BY_HAND[:-1], "--even-if-revealing", BY_HAND[-1])) as running, running.client() as audits:
        assert audits.terms().budget is not None


WORTH = r"INFO loans: {metric} +±0\.\d+ \(0\.0\d+\) +±0\.\d+ \(0\.\d+\)"


@pytest.mark.check
def test_what_answers_are_worth_is_a_line_for_each_metric(tmp_path: Path) -> None:
    with serving(deployment(tmp_path)) as running:
        running.said("by the best attack known here, groups of")
        told = running.said("^.*95% interval").splitlines()
    assert max(map(len, told[:4])) <= 80
    assert re.search(r"INFO loans: 95% interval \(median error\) at epsilon 2$", told[0])
    assert re.search(r"INFO loans: metric +one model +20 in a batch$", told[1])
    for line, metric in zip(told[2:4], ("sp", "eo"), strict=True):
        assert re.search(WORTH.format(metric=metric) + "$", line)


def made_for_one_person(folder: Path) -> None:
    """Have noise on each gap, made for the smallest group there could be."""
    change(folder, mechanism="laplace")
    policy = folder / "policy.toml"
    text = policy.read_text()
    assert text.count("minimum_group = 20 ") == 1
    policy.write_text(text.replace("minimum_group = 20 ", "minimum_group = 1 "))


@pytest.mark.check
@pytest.mark.parametrize("command", [BY_HAND, BY_COMMAND], ids=["by hand", "by command"])
def test_answers_worth_less_than_nothing_are_not_served_unless_told(own: Path, command: tuple[str, ...]) -> None:
    made_for_one_person(own)
    ended = forked_programs.run(
        [sys.executable, *command, str(own / "policy.toml")], capture_output=True, text=True, timeout=300, check=False
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert re.fullmatch(
        r"compliance: loans: audit: sp of one model at epsilon 2 errs by 0\.\d+, saying 0 by 0\.0\d+: more people, "
        r'mechanism = "recommended" or a larger epsilon would help; --even-if-worthless serves all the same\n',
        ended.stderr.splitlines(keepends=True)[-1],
    )
    assert not (own / "ledger" / "ledger.sqlite").exists()
    with serving(own, (*command[:-1], "--even-if-worthless", command[-1])) as running:
        running.said(r"WARNING loans: sp of 1 errs by 0\.\d+, saying 0 by 0\.0\d+\n")


@pytest.mark.check
def test_a_policy_that_makes_answers_worthless_is_taken_up_with_a_warning(own: Path) -> None:
    """It may be lower for safety's sake: a service that is running goes on with it."""
    with serving(own) as running, running.client() as audits:
        made_for_one_person(own)
        running.process.send_signal(signal.SIGHUP)
        running.said("WARNING loans: sp of 1 errs")
        assert audits.terms().mechanism == "laplace"
        assert audits.ask(PREDICTIONS, "sp", 0.5).epsilon_charged == 0.5


def test_another_data_set_is_not_served(served: Served) -> None:
    folder = served.folder / "certificates" / "developer-alice"
    with AuditClient(served.address, folder, data="other") as audits:
        assert refusal(audits.terms)[0] == "DEAL_UNKNOWN"


@pytest.mark.check
def test_a_metric_s_other_name_is_the_same_question(own: Path) -> None:
    with serving(own) as running, running.client() as audits:
        first = audits.ask(PREDICTIONS, "sp", 0.5, once=True)
        again = audits.ask(PREDICTIONS, "demographic_parity", 0.5, once=True)
        assert (again.request_id, again.gaps) == (first.request_id, first.gaps)
        assert audits.expected_error("statistical_parity", 1, 0.5).error == audits.expected_error("sp", 1, 0.5).error
        with pytest.raises(
            ValueError, match=r"unknown metric 'demografic_parity', .*; did you mean demographic_parity\?"
        ):
            audits.ask(PREDICTIONS, "demografic_parity", 0.5)


@pytest.mark.check
def test_a_client_finds_a_service_that_was_started_again(own: Path) -> None:
    with serving(own) as first, first.client() as audits:
        audits.terms()
        change(own, listen=first.address)
        assert first.end() == 0
        with ThreadPoolExecutor(1) as elsewhere:
            asked = elsewhere.submit(audits.ask, PREDICTIONS, "sp", 0.5, request_id="once")
            with serving(own):
                assert asked.result(30).epsilon_charged == 0.5


def test_a_service_that_never_answered_is_not_waited_for(own: Path) -> None:
    folder = own / "certificates" / "developer-alice"
    with AuditClient("127.0.0.1:1", folder) as audits, pytest.raises(AuditUnavailable, match="nobody is there"):
        audits.ask(PREDICTIONS, "sp", 0.5)


def test_a_service_that_is_started_again_remembers(own: Path) -> None:
    with serving(own) as first, first.client() as audits:
        answer = audits.ask(PREDICTIONS, "sp", 0.5, request_id="once")
        assert first.end() == 0
    with serving(own) as second, second.client() as audits:
        again = audits.ask(PREDICTIONS, "sp", 0.5, request_id="once")
        assert np.array_equal(again.gaps, answer.gaps)
        assert audits.terms().epsilon_remaining == answer.epsilon_remaining


@pytest.mark.check
def test_an_end_by_sigterm_is_clean_too(own: Path) -> None:
    with serving(own) as running:
        running.process.terminate()
        assert running.process.wait(300) == 0
    assert "SIGTERM: leaving" in running.log


@pytest.mark.check
def test_an_end_does_not_wait_for_what_answers_are_found_to_be_worth(tmp_path: Path) -> None:
    """What is left of that takes several seconds of processor time."""
    with serving(deployment(tmp_path, '["sp", "eo", "ppv", "eodds_max"]', mechanism="recommended")) as running:
        before = psutil.Process(running.process.pid).cpu_times()
        running.process.terminate()
        _, status, used = os.wait4(running.process.pid, 0)
        running.process.returncode = status
    assert status == 0
    assert not list((tmp_path / "ledger").glob("*-wal")), "the file is whole without a log"
    assert used.ru_utime + used.ru_stime - before.user - before.system < 1.5


# What a start that fails leaves behind --------------------------------------------------------------------------------


def files(folder: Path) -> dict[str, bytes]:
    """All that lies in a folder, but for the log; folders too."""
    found = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.name != "log"}
    return {name: path.read_bytes() if path.is_file() else b"folder" for name, path in found.items()}


def listening(folder: Path, served: Served) -> None:
    change(folder, listen=served.address)


FAILS: dict[str, Callable[[Path, Served], object]] = {
    "no data": lambda folder, _: (folder / "loans.csv").unlink(),
    "a group that is too small": lambda folder, _: (folder / "policy.toml").write_text(
        (folder / "policy.toml").read_text().replace("minimum_group = 20", "minimum_group = 90")
    ),
    "a port in use": listening,
    "a key that others can read": lambda folder, _: (folder / "certificates/compliance/key.pem").chmod(0o644),
}


@pytest.mark.parametrize(
    "why", ["a port in use", *(pytest.param(why, marks=pytest.mark.check) for why in FAILS if "port" not in why)]
)
def test_a_first_start_that_fails_leaves_nothing(own: Path, served: Served, why: str) -> None:
    FAILS[why](own, served)
    before = files(own)
    ended(own)
    assert files(own) == before


def away(*names: str) -> Callable[[Path], None]:
    def move(folder: Path) -> None:
        for name in names:
            shutil.move(folder / name, folder.with_name(f"{folder.name}-{Path(name).name}"))

    return move


def key_for_all(folder: Path) -> None:
    (folder / "certificates/compliance/seal.key").chmod(0o644)


LOST: dict[str, tuple[Callable[[Path], None], str]] = {
    "the ledger's folder": (away("ledger"), "it is an old copy: it ends at record 0"),
    "the ledger": (away("ledger/ledger.sqlite"), "it is an old copy: it ends at record 0"),
    "the head": (away("seal/head"), "the sealed head is missing: bring "),
    "the head's folder": (away("seal"), "the sealed head is missing: bring "),
    "the seal's key": (away("certificates/compliance/seal.key"), "seal.key: is missing, with which "),
    "ledger and key": (away("ledger", "certificates/compliance/seal.key"), "seal.key: is missing, with which "),
    "head and key": (away("seal", "certificates/compliance/seal.key"), "seal.key: is missing, with which "),
    "ledger and head": (away("ledger", "seal"), "start with --new-ledger"),
    "a key that others can read": (key_for_all, "others can read this key"),
    "a ledger that is none": (
        lambda folder: (folder / "ledger/ledger.sqlite").write_text("no ledger"),  # type: ignore[dict-item]
        "is not a database",
    ),
}


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "what",
    [
        what if what in ("the ledger", "the seal's key") else pytest.param(what, marks=pytest.mark.check)
        for what in LOST
    ],
)
def test_a_start_without_all_that_was_there_leaves_nothing(own: Path, what: str) -> None:
    with serving(own) as running, running.client() as audits:
        audits.ask(PREDICTIONS, "sp", 0.5)
        assert running.end() == 0
    (own / "ledger" / "ledger.sqlite.service").unlink()
    lost, why = LOST[what]
    lost(own)
    before = files(own)
    for _ in range(2):
        assert why in ended(own)
        assert files(own) == before


# What the ledger stands for -------------------------------------------------------------------------------------------


def ended(folder: Path, *arguments: str, command: tuple[str, ...] = BY_HAND) -> str:
    """The one line with which a service says that it does not start."""
    done = forked_programs.run(
        [sys.executable, *command, str(folder / "policy.toml"), *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    said = [line for line in done.stderr.splitlines() if "compliance: " in line]
    assert (done.returncode, done.stdout, len(said)) == (2, "", 1), done.stderr
    return said[0]


def lose(folder: Path) -> None:
    """Lose the ledger and its head, as by a volume that is not mounted."""
    for name in ("ledger", "seal"):
        shutil.rmtree(folder / name)


@pytest.mark.check
@pytest.mark.parametrize(
    "command", [pytest.param(BY_HAND, marks=pytest.mark.slow(seconds=10)), BY_COMMAND], ids=["by hand", "by command"]
)
def test_a_lost_ledger_is_begun_anew_by_an_operator_who_says_so(own: Path, command: tuple[str, ...]) -> None:
    with serving(own) as running, running.client() as audits:
        audits.ask(PREDICTIONS, "sp", 0.5, request_id="once")
    assert "leave out --new-ledger" in ended(own, "--new-ledger", command=command)
    lose(own)
    for _ in range(2):
        assert "start with --new-ledger, which forgets what was spent" in ended(own, command=command)
        (own / "ledger").mkdir(exist_ok=True)
        (own / "ledger" / "ledger.sqlite").touch()  # an empty file is no ledger either
    with serving(own, (*command[:-1], "--new-ledger", command[-1])) as running, running.client() as audits:
        assert audits.terms().epsilon_remaining == 3.0
    with serving(own) as running, running.client() as audits:
        assert audits.terms().epsilon_remaining == 3.0


def people(folder: Path, group: Callable[[int], str], name: str = "loans.csv") -> None:
    """Change the file's groups, row by row."""
    first, *rows = (folder / "loans.csv").read_text().splitlines()
    column = first.split(",").index("group")
    cells = [row.split(",") for row in rows]
    for number, row in enumerate(cells):
        row[column] = group(number) or row[column]
    (folder / name).write_text("\n".join([first, *(",".join(row) for row in cells)]) + "\n")


@pytest.mark.check
def test_a_name_stands_for_its_data_and_data_for_their_name(own: Path) -> None:
    with serving(own):
        pass
    people(own, lambda _: "", "same.csv")
    people(own, lambda number: "ab"[number % 2], "other.csv")
    change(own, source="other.csv")
    assert "data set loans: this name stands for other data" in ended(own)
    change(own, source="same.csv", protected="group")
    policy = own / "policy.toml"
    text = policy.read_text()
    with serving(own):
        pass
    policy.write_text(text.replace("[data]", '[data]\nname = "again"'))
    assert "data set again: these people's data are called loans" in ended(own)
    swapped = text.replace('advantaged = "a"', 'advantaged = "b"').replace('disadvantaged = "b"', 'disadvantaged = "a"')
    policy.write_text(swapped.replace("[data]", '[data]\nname = "again"'))
    assert "data set again: these people's data are called loans" in ended(own)
    # Neither other groups nor another order of the rows makes them others; other rows do.
    policy.write_text(text.replace("[data]", '[data]\nname = "others"').replace("same.csv", "other.csv"))
    assert "data set others: these people's data are called loans" in ended(own)
    first, *rows = (DOCS / "example" / "loans.csv").read_text().splitlines()
    (own / "other.csv").write_text("\n".join([first, *rows[PREDICTIONS.size : 2 * PREDICTIONS.size]]) + "\n")
    with serving(own):
        pass
