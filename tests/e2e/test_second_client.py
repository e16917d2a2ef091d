"""The client in JavaScript, started as its users start it: against a real deployment, and by the tester of clients."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairwall.client.gaps import Audits, ask
from fairwall.rpc import identity
from fairwall.rpc.channel import connect
from sim.transcripts.methods import descriptor_set
from tests.e2e.test_serve import Served, deployment, serving

PAGE = Path(__file__).parents[2] / "docs" / "tools.md"
CLIENT = Path(__file__).parents[1] / "second_client"
NODE = shutil.which("node")
TIMES = 50
PEOPLE = 200 * TIMES
"""So many that a batch takes more than a chunk."""

if NODE is None:
    pytest.skip("node is not installed", allow_module_level=True)
if not (CLIENT / "node_modules" / "@grpc" / "grpc-js").is_dir():
    pytest.skip("its modules are not installed: make second-client", allow_module_level=True)


@dataclass(frozen=True)
class Stranger:
    """Somebody who has the client, its modules and the protocol's descriptors, and no other file of ours."""

    folder: Path
    served: Served

    def ask(self, command: str, *options: object, developer: str = "alice") -> subprocess.CompletedProcess[str]:
        credentials = self.served.folder / "certificates" / f"developer-{developer}"
        places = ("--address", self.served.address, "--credentials", credentials, "--descriptors", "protocol.binpb")
        words = [str(word) for word in (NODE, "ask.js", command, *places, *options)]
        return subprocess.run(words, cwd=self.folder, capture_output=True, text=True, timeout=300, check=False)

    def audit(self, predictions: Any, *options: object, **named: str) -> subprocess.CompletedProcess[str]:
        (self.folder / "predictions.json").write_text(json.dumps(predictions.tolist()))
        return self.ask("audit", "--predictions", "predictions.json", "--metric", "sp", *options, **named)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The documented example, with everybody in it many times."""
    folder = deployment(tmp_path_factory.mktemp("loans"))
    head, *rows = (folder / "loans.csv").read_text().splitlines(keepends=True)
    (folder / "loans.csv").write_text("".join([head, *rows * TIMES]))
    with serving(folder) as running:
        yield running


@pytest.fixture(scope="module")
def stranger(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Stranger:
    folder = tmp_path_factory.mktemp("stranger")
    for name in ("ask.js", "audit_client.js", "package.json"):
        shutil.copyfile(CLIENT / name, folder / name)
    (folder / "node_modules").symlink_to(CLIENT / "node_modules")
    (folder / "protocol.binpb").write_bytes(descriptor_set().SerializeToString())
    return Stranger(folder, served)


@pytest.mark.check
def test_it_reads_the_same_terms(stranger: Stranger) -> None:
    told = stranger.ask("terms")
    assert (told.returncode, told.stderr) == (0, "")
    read = json.loads(told.stdout)
    with stranger.served.client() as client:
        terms = client.terms()
    assert [name.removeprefix("METRIC_").lower() for name in read["metrics"]] == [*terms.metrics]
    for name in ("people", "mechanism", "epsilon", "epsilon_remaining", "queries_max", "epsilon_max"):
        assert read[name] == getattr(terms, name), name


@pytest.mark.few(1)
@pytest.mark.parametrize("first", ["python", "node"])
@pytest.mark.parametrize(("kind", "models"), [("float64", 20), ("uint8", 3)])
def test_it_gets_the_same_answer_as_our_own_client_for_the_same_request(
    stranger: Stranger, kind: str, models: int, first: str
) -> None:
    """Another request would be refused, a bit of which is another: both use the same id."""
    drawn = np.random.default_rng(1).random((models, PEOPLE))
    predictions = drawn if kind == "float64" else (drawn > 0.5).astype(np.uint8)
    name = f"{kind}-{first}"

    def theirs() -> dict[str, Any]:
        asked = ("--epsilon", 0.25, "--type", kind, "--threshold", 0.1, "--request-id", name, "--json")
        told = stranger.audit(predictions, *asked)
        assert (told.returncode, told.stderr) == (0, "")
        answer: dict[str, Any] = json.loads(told.stdout)
        return answer

    credentials = identity.load(stranger.served.folder / "certificates" / "developer-alice")
    with stranger.served.client() as client, connect(stranger.served.address, "compliance", credentials) as channel:
        before = client.terms().epsilon_remaining
        if first == "node":
            theirs()
        ours = ask(Audits(channel), "loans", name, "sp", predictions, 0.25, threshold=0.1)
        answer = theirs()
        assert before - client.terms().epsilon_remaining == 0.25, "charged once"
    assert answer.pop("request_id") == name
    for field, told in answer.items():
        assert np.array_equal(getattr(ours, field), told), field
    # It knows no rows by ids, and tells the request's id, which is looked at above.
    assert set(answer) == set(vars(ours)) - {
        "rows_compared",
        "request_id",
        "data",
        "metric",
        "by",
        "models",
        "digest",
        "draws",
    }


@pytest.mark.check
def test_gaps_are_printed_with_their_intervals(stranger: Stranger) -> None:
    predictions = np.linspace(0, 1, PEOPLE)[None]
    told = stranger.audit(predictions, "--epsilon", 0.25, "--request-id", "printed")
    with stranger.served.client() as client:
        answer = client.ask(predictions, "sp", 0.25, request_id="printed")
    (gap,), (low,), (high,) = answer.gaps, answer.low, answer.high
    assert told.stdout.splitlines() == [
        f"model 0: {gap:.4f}, between {low:.4f} and {high:.4f}",
        f"charged 0.25, {answer.epsilon_remaining_now:g} is left",
    ]


@pytest.mark.check
def test_a_refusal_says_its_reason_and_its_numbers(stranger: Stranger) -> None:
    told = stranger.audit(np.zeros((1, PEOPLE)), "--epsilon", 2.5)
    assert (told.returncode, told.stdout) == (1, "")
    assert told.stderr.startswith("ask: EPSILON_INVALID: epsilon is a number of at least 1e-12")
    assert told.stderr.endswith(", epsilon_max 2, epsilon_min 0.001\n")
    told = stranger.audit(np.zeros((1, PEOPLE - 1)), "--epsilon", 0.25)
    assert told.stderr.endswith(
        f": predictions have one row a model and one column a person of the test set, people {PEOPLE}\n"
    )
    told = stranger.audit(np.zeros((21, PEOPLE)), "--epsilon", 0.25)  # refused while it is still being sent
    assert told.stderr.startswith("ask: QUERIES_OUT_OF_RANGE: ")
    assert told.stderr.endswith(", queries_max 20\n")
    told = stranger.ask("terms", developer="carol")
    assert (told.returncode, told.stderr) == (1, "ask: CALLER_NOT_ALLOWED: this party may not call this method\n")


@pytest.mark.check
def test_what_cannot_be_asked_is_status_2_and_nothing_is_sent(stranger: Stranger) -> None:
    with stranger.served.client() as client:
        before = client.terms().epsilon_remaining
        for predictions, kind in ((np.full((1, PEOPLE), 0.5), "uint8"), (np.full((1, PEOPLE), 1.5), "float64")):
            told = stranger.audit(predictions, "--epsilon", 0.25, "--type", kind)
            assert (told.returncode, told.stdout) == (2, "")
            assert told.stderr == (
                "ask: predictions have one row a model and one column a person, in [0, 1], as uint8 0 or 1\n"
            )
        assert client.terms().epsilon_remaining == before


@pytest.mark.check
def test_the_program_of_the_page_runs(stranger: Stranger) -> None:
    (shown,) = re.findall(r"```js\n(.*?)```", PAGE.read_text(), re.DOTALL)
    own = stranger.served.folder / "certificates" / "developer-alice"
    places = shown.replace("127.0.0.1:7443", stranger.served.address).replace("certificates/developer-alice", str(own))
    program = stranger.folder / "page.js"
    given = f"const predictions = Array({PEOPLE}).fill(0.5);"
    program.write_text(f"{given}\n{places}\nconsole.log(gaps.length === 1 && low[0] <= high[0]);\n")
    told = subprocess.run([str(NODE), "page.js"], cwd=stranger.folder, capture_output=True, text=True, timeout=300)
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.endswith("true\n")


RETRIED = """
[[case]]
number = "X901"
title = "a request whose answer was lost is sent again, and answered"
sentence = "The request id makes it idempotent"
steps = [{ do = "client", lose = 2, audits = [3, 3] }]
"""


@pytest.mark.check
def test_the_conformance_test_passes_it(
    fairwall: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """By the checked-in .proto files; an answer that was lost comes under the same id."""
    (tmp_path / "retried.toml").write_text(RETRIED)
    start = f"{NODE} {CLIENT / 'ask.js'} try --address {{address}} --credentials {{credentials}}"
    told = fairwall("test", "conformance", "client", "--start", start, "--cases", tmp_path)
    assert told.returncode == 0, told.stdout
    assert told.stdout.endswith("15 checks: 15 passed\n")
