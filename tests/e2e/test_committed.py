"""A service that commits before anybody asks, and a regulator that opens what it answered."""

from __future__ import annotations

import hmac
import re
import shutil
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import tomli_w

from fairwall.client import AuditClient, gaps
from fairwall.client.kept import Kept, KeptError, NotKept
from fairwall.compliance.v1 import audit_service_pb2 as audit_pb2
from fairwall.rpc import arrays, identity
from fairwall.wire.audits import audit_digest
from tests.e2e.test_serve import DOCS, PREDICTIONS, Served, deployment, serving
from tests.support.command import fairwall

PAGE = (DOCS / "committed.md").read_text()


def binding(folder: Path, mechanism: str = "counts", **audit: Any) -> Path:
    """The documented example, which commits to what it answers."""
    deployment(folder)
    (folder / "loans.csv").chmod(0o600)
    change(folder, lambda policy: policy["audit"].update(committed=True, mechanism=mechanism, **audit))
    return folder


def change(folder: Path, spoil: Callable[[dict[str, Any]], object]) -> None:
    policy = tomllib.loads((folder / "policy.toml").read_text())
    spoil(policy)
    (folder / "policy.toml").write_text(tomli_w.dumps(policy))


def asked(audits: AuditClient, kept: Path) -> list[str]:
    """Ask four questions, the last of them twice; the ids of all."""
    audits.commit(kept)
    rng = np.random.default_rng(1)
    answers = [
        audits.ask(rng.random((3, PREDICTIONS.size)), "sp", 0.1),
        audits.ask(rng.random(PREDICTIONS.size) < 0.5, "eo", 0.1, threshold=0.1),
        audits.ask(PREDICTIONS, "sp", 0.2, once=True),
        audits.ask(PREDICTIONS, "sp", 0.2, once=True),
    ]
    return [answer.request_id for answer in answers]


def opened(folder: Path, *options: str) -> tuple[int, list[str], str]:
    """What the regulator says of what alice kept."""
    done = fairwall("deploy", "open", str(folder / "asked"), "--policy", str(folder / "policy.toml"), *options)
    return done.returncode, done.stdout.splitlines(), done.stderr


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, list[str]]]:
    folder = binding(tmp_path_factory.mktemp("loans"))
    with serving(folder) as running, running.client() as audits:
        yield running, asked(audits, folder / "asked")


def test_an_honest_service_is_found_to_be_while_it_serves(audited: tuple[Served, list[str]]) -> None:
    served, ids = audited
    assert Kept.read(served.folder / "asked").request_ids == set(ids)
    said = "requests: all were answered as was committed to"
    assert opened(served.folder) == (0, [f"opened 3 of 3 {said}"], "")
    assert opened(served.folder, "--openings", "2") == (0, [f"opened 2 of 3 {said}"], "")


def test_an_answer_that_cannot_be_kept_is_given_all_the_same(audited: tuple[Served, list[str]], tmp_path: Path) -> None:
    with audited[0].client("bob") as audits:
        audits.commit(tmp_path / "bob")
        shutil.rmtree(tmp_path / "bob")
        with pytest.warns(NotKept, match="first was answered and is not kept"):
            answer = audits.ask(PREDICTIONS, "sp", 0.1, request_id="first")
    assert answer.epsilon_charged == 0.1


def test_what_is_published_tells_no_group(audited: tuple[Served, list[str]]) -> None:
    served, _ = audited
    with served.client("bob") as audits:
        told = audits.terms().commitment
    assert told is not None
    assert told.rows == PREDICTIONS.size
    assert {len(part) for part in (told.rows_digest, told.root, told.seed_digest, told.terms_digest)} == {32}


def test_more_openings_than_requests_is_one_line(audited: tuple[Served, list[str]]) -> None:
    assert opened(audited[0].folder, "--openings", "4") == (
        2,
        [],
        "fairwall: --openings: the developer kept 3 requests, not 4\n",
    )


@pytest.fixture
def copied(audited: tuple[Served, list[str]], tmp_path: Path) -> Path:
    """All that is there, to be spoilt."""
    return Path(shutil.copytree(audited[0].folder, tmp_path / "copy"))


def swap(folder: Path) -> None:
    people = pd.read_csv(folder / "loans.csv")
    first = people["group"].ne(people["group"][0]).idxmax()
    people.loc[[0, first], "group"] = people.loc[[first, 0], "group"].to_numpy()
    people.to_csv(folder / "loans.csv", index=False)
    (folder / "loans.csv").chmod(0o600)


@pytest.mark.parametrize(
    ("spoil", "status", "said"),
    [
        (swap, 1, "the commitment is not kept: it is to other people"),
        (lambda folder: (folder / "certificates/compliance/seal.key").write_text("0" * 64), 1, "another key or ledger"),
        (lambda folder: change(folder, lambda p: p["audit"].update(queries_max=7)), 2, "not those that were committed"),
        (lambda folder: change(folder, lambda p: p["audit"].pop("committed")), 2, "audit.committed is not set"),
        (lambda folder: change(folder, lambda p: p["data"].update(name="other")), 2, "it has no data set 'loans'"),
        (lambda folder: (folder / "certificates/compliance/seal.key").unlink(), 2, "seal.key: no such file"),
        (lambda folder: (folder / "asked/commitment.json").write_text("{"), 2, "no commitment is kept there"),
        (lambda folder: next((folder / "asked").glob("*.npz")).write_bytes(b"PK"), 2, "no question and answer"),
    ],
)
def test_what_is_not_as_it_was_committed_to_is_said_in_one_line(
    copied: Path, spoil: Callable[[Path], object], status: int, said: str
) -> None:
    spoil(copied)
    ended, lines, error = opened(copied)
    assert ended == status
    assert said in (lines[0] if status == 1 else error)
    assert len(lines) + error.count("\n") == 1


def test_another_question_or_another_answer_is_told_from_the_ledger_s(copied: Path) -> None:
    kept = Kept.read(copied / "asked")
    first, second, third = sorted(kept.request_ids)
    for name, turned in ((first, 1.0), (second, 0.0)):
        one = kept.asked(name)
        kept.keep(one.header, [1 - one.predictions if turned else one.predictions], one.gaps + 1 - turned)
    missing = kept.asked(third)
    missing.header.request_id = "never"
    kept.keep(missing.header, [missing.predictions], missing.gaps)
    status, lines, _ = opened(copied)
    assert status == 1
    assert sorted(lines) == sorted(
        [
            f"request {first}: the ledger has another question under its id",
            f"request {second}: the ledger has another answer than the developer got",
            "request never: the ledger does not have it",
        ]
    )


@pytest.mark.check
@pytest.mark.parametrize(
    "mechanism",
    [
        *("laplace", "randomized-response"),
        *(pytest.param(name, marks=pytest.mark.slow(seconds=14)) for name in ("cube", "recommended", "cells")),
    ],
)
def test_every_pure_mechanism_is_opened_and_a_start_changes_nothing(tmp_path: Path, mechanism: str) -> None:
    binding(tmp_path, mechanism, queries_max=20)
    rng = np.random.default_rng(2)
    for _ in range(2):
        with serving(tmp_path) as running, running.client() as audits:
            audits.commit(tmp_path / "asked")
            for models, epsilon in ((1, 0.2), (6, 0.4)):
                audits.ask(rng.random((models, PREDICTIONS.size)) < 0.5, "sp", epsilon)
    status, (line,), _ = opened(tmp_path)
    assert (status, line) == (0, "opened 4 of 4 requests: all were answered as was committed to")


@pytest.mark.check
def test_rows_that_are_known_by_ids_are_opened_in_whatever_order_they_were_sent(tmp_path: Path) -> None:
    binding(tmp_path, "laplace")
    change(tmp_path, lambda policy: policy["data"].update(id="id"))
    ids = pd.read_csv(tmp_path / "loans.csv")["id"]
    order = np.random.default_rng(4).permutation(len(ids))
    with serving(tmp_path) as running, running.client() as audits:
        audits.commit(tmp_path / "asked")
        audits.ask(PREDICTIONS[order], "sp", 0.5, ids=ids[order].tolist())
    assert opened(tmp_path)[:2] == (0, ["opened 1 of 1 requests: all were answered as was committed to"])


@pytest.mark.check
def test_a_search_is_opened_too(tmp_path: Path) -> None:
    binding(tmp_path, "recommended")
    rng = np.random.default_rng(3)
    with serving(tmp_path) as running, running.client() as audits:
        audits.commit(tmp_path / "asked")
        candidates = {f"m{model}": rng.random(PREDICTIONS.size) < 0.5 for model in range(6)}
        utility = {name: 0.7 + place / 100 for place, name in enumerate(candidates)}
        audits.search(candidates, "sp", 1.0, utility=utility, baseline="m0")
    assert opened(tmp_path)[:2] == (0, ["opened 1 of 1 requests: all were answered as was committed to"])


CHEAT = """
from compliance.noise import sampling
from compliance.noise.sampling import System

honest = System.laplace
def cheating(self, values, scale, step):
    return max((honest(self, values, scale, step) for _ in range(5)), key=lambda drawn: drawn[0])
System.laplace = cheating

from compliance.__main__ import main
main()
"""


def test_noise_is_made_of_what_compliance_cannot_foresee(audited: tuple[Served, list[str]]) -> None:
    """Also of a question whose id anybody can work out: compliance could try keys until it likes the noise."""
    running, ids = audited
    kept = Kept.read(running.folder / "asked")
    nonces = [kept.asked(name).header.nonce for name in ids]
    assert nonces[2] == nonces[3], "the same question"
    assert len(set(nonces)) == 3
    asked = kept.asked(ids[2])
    unkeyed = audit_pb2.AuditHeader()
    unkeyed.CopyFrom(asked.header)
    for field in ("nonce", "request_id"):
        unkeyed.ClearField(field)
    key = identity.load(running.folder / "certificates" / "developer-alice").key
    digest = audit_digest(unkeyed, asked.predictions)
    assert asked.header.nonce == hmac.digest(key.encode(), digest, "sha256")
    assert asked.header.nonce not in (digest, hmac.digest(b"", digest, "sha256"))


def test_an_answer_that_does_not_repeat_the_nonce_is_thrown_away() -> None:
    class Older:
        def Audit(self, requests: Iterator[Any], timeout: float) -> audit_pb2.AuditResponse:  # noqa: ARG002, N802
            return audit_pb2.AuditResponse(gaps=arrays.to_message(np.zeros(1)))

    with pytest.raises(arrays.ArrayError, match="did not count your nonce in"):
        gaps.ask(Older(), "loans", "r", "sp", np.zeros((1, 4)), 1.0, nonce=b"n" * 32)  # type: ignore[arg-type]


@pytest.mark.check
def test_the_best_of_five_noises_is_found(tmp_path: Path) -> None:
    binding(tmp_path, "laplace")
    (tmp_path / "cheat.py").write_text(CHEAT)
    with serving(tmp_path, (str(tmp_path / "cheat.py"), "--policy")) as running, running.client() as audits:
        audits.commit(tmp_path / "asked")
        for _ in range(12):
            audits.ask(PREDICTIONS, "sp", 0.1)
    status, lines, _ = opened(tmp_path)
    # The first of five noises is the largest once in five times, and of all twelve once in 2 * 10^8.
    assert status == 1
    assert 1 <= len(lines) <= 12
    assert all("answered otherwise than by the people and the noise that were committed to" in line for line in lines)


@pytest.mark.check
def test_a_service_that_commits_to_nothing_or_to_something_else_is_noticed(tmp_path: Path) -> None:
    deployment(tmp_path)
    with (
        serving(tmp_path) as running,
        running.client() as audits,
        pytest.raises(ValueError, match=r"no audit\.committed"),
    ):
        audits.commit(tmp_path / "asked")
    change(tmp_path, lambda policy: policy["audit"].update(committed=True))
    with serving(tmp_path) as running, running.client() as audits:
        audits.commit(tmp_path / "asked")
        audits.commit(tmp_path / "asked")
        change(tmp_path, lambda policy: policy["audit"].update(queries_max=3))
        running.process.send_signal(1)
        running.said("SIGHUP: loans")
        with pytest.raises(KeptError, match="has changed since"):
            audits.commit(tmp_path / "asked")


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda policy: policy["audit"].update(delta=1e-6), "audit.committed: noise is made of a key"),
        (lambda policy: policy["audit"].update(committed=1), "audit.committed: must be a valid boolean"),
    ],
)
def test_what_cannot_be_committed_to_is_refused(
    tmp_path: Path, spoil: Callable[[dict[str, Any]], object], why: str
) -> None:
    binding(tmp_path)
    change(tmp_path, spoil)
    done = fairwall("deploy", "check", "--policy", str(tmp_path / "policy.toml"))
    assert done.returncode == 2
    assert why in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.check
def test_the_page_s_commands_are_those_that_are_run(tmp_path: Path) -> None:
    binding(tmp_path, "recommended")
    (toml,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (python,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (command,) = re.findall(r"```sh\nfairwall (.*?)\n```", PAGE, re.DOTALL)
    change(tmp_path, lambda policy: policy["audit"].update(tomllib.loads(toml)["audit"]))
    with serving(tmp_path) as running:
        found = python.replace("127.0.0.1:7443", running.address)
        found = found.replace('"certificates', f'"{tmp_path}/certificates').replace('"asked"', f'"{tmp_path}/asked"')
        exec(found, {"predictions": PREDICTIONS})  # noqa: S102 - the page's own
    done = fairwall(*command.split(), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "opened 1 of 1 requests: all were answered as was committed to\n"
