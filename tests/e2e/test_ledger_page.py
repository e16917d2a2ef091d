"""A signed page of a service that is running, read by somebody who has nothing but the page and an authority."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from fairwall.client import AuditRefused
from tests.e2e.test_serve import DOCS, PREDICTIONS, deployment, serving
from tests.support import forked_programs
from tests.support.command import fairwall


def documented(section: str) -> list[list[str]]:
    """The commands of a section of the ledger's page."""
    _, _, text = (DOCS / "ledger.md").read_text().partition(f"\n## {section}\n")
    body = text.partition("\n## ")[0]
    lines = [line for block in body.split("```sh\n")[1:] for line in block.partition("```")[0].splitlines()]
    return [shlex.split(line.removeprefix("fairwall ")) for line in lines]


@pytest.mark.check
def test_a_page_of_a_running_service_is_checked_where_there_is_nothing_else(tmp_path: Path) -> None:
    own, away = deployment(tmp_path), tmp_path / "away"
    report, check, find = documented("A signed page")
    with serving(own) as running, running.client() as alice, running.client("bob") as bob:
        told = alice.ask(PREDICTIONS, "sp", 0.5, request_id="first", threshold=0.25)
        bob.ask(np.stack([PREDICTIONS, 1 - PREDICTIONS]), "eo", 1.5, request_id="second")
        with pytest.raises(AuditRefused):
            bob.ask(PREDICTIONS, "sp", 1.5)
        shutil.copyfile(own / "log", own / "service.log")
        done = fairwall(*report, cwd=own)
        assert (done.returncode, done.stderr) == (0, "")
        # Nobody noticed: the same request gets the same answer, and another is answered.
        assert alice.ask(PREDICTIONS, "sp", 0.5, request_id="first", threshold=0.25).gaps == told.gaps
        alice.ask(PREDICTIONS, "sp", 0.5)
        assert running.end() == 0

    away.mkdir()
    for name in ("loans.html", "loans.intoto.json", "certificates/developer-alice/authority.pem"):
        shutil.move(own / name, away / Path(name).name)
    np.save(away / "predictions.npy", PREDICTIONS)
    shutil.rmtree(own / "ledger")
    elsewhere = {"PATH": os.environ["PATH"], "HOME": str(away), "PYTHONPATH": os.environ.get("PYTHONPATH", "")}

    def checked(*words: str) -> tuple[int, str]:
        done = forked_programs.run(
            [sys.executable, "-m", "sim", *words], cwd=away, env=elsewhere, capture_output=True, text=True, check=False
        )
        assert done.stderr == ""
        return done.returncode, done.stdout

    status, said = checked(*find, "--threshold", "0.25")
    assert status == 0
    assert said.startswith("signed by compliance of loans at ")
    assert said.endswith("predictions.npy: asked about in record 5, alice/first, sp\n")
    assert max(map(len, said.splitlines())) <= 80

    stated = json.loads((away / "loans.intoto.json").read_text())
    assert stated["payloadType"] == "application/vnd.in-toto+json"
    text = (away / "loans.html").read_text()
    assert text.count("BUDGET_EXHAUSTED") == 1
    assert "1 call was refused, by the log" in text
    (away / "loans.html").write_text(text.replace("BUDGET_EXHAUSTED", "BUDGET_EXHAUSTEd"))
    assert checked(*check) == (
        1,
        "REFUSED: loans.html: the page is not the one that was signed with this statement\n",
    )


@pytest.mark.check
def test_the_account_is_what_developers_were_told(tmp_path: Path) -> None:
    """Bit for bit, and so nothing about anybody that was not told before."""
    from sim.attestation.check import check

    own = deployment(tmp_path)
    batch = np.stack([PREDICTIONS, 1 - PREDICTIONS])
    with serving(own) as running, running.client() as alice:
        told = [alice.ask(batch, metric, 0.5, request_id=metric) for metric in ("sp", "eo")]
        assert running.end() == 0
    report = ("deploy", "ledger", "report", "--policy", own / "policy.toml", "--out", own / "page.html")
    assert fairwall(*report).returncode == 0
    account = check(own / "page.html", authority=own / "certificates/developer-alice/authority.pem").account
    for answer, audit in zip(told, account["audits"], strict=True):
        for key, values in (("gap", answer.gaps), ("low", answer.low), ("high", answer.high)):
            assert [model[key] for model in audit["models"]] == values.tolist()

    # Neither a developer's credentials nor a ledger that is not the newest makes a page.
    kept = tmp_path / "kept"
    shutil.copytree(own / "ledger", kept)
    with serving(own) as running, running.client() as alice:
        alice.ask(batch, "sp", 0.5)
        assert running.end() == 0
    shutil.rmtree(own / "ledger")
    shutil.move(kept, own / "ledger")
    (own / "page.html").unlink()
    done = fairwall(*report)
    assert (done.returncode, done.stdout) == (2, "")
    assert "it is an old copy: it ends at record 6, and 7 was sealed" in done.stderr
    assert not (own / "page.html").exists()
