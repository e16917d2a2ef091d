"""docs/replicas.md: its commands serve two services on one database, and its program asks both."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from compliance.deployment.policy.reading import read
from tests.support import command, forked_programs, postgres_server
from tests.support.loans_deployment import free_port

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "replicas.md").read_text()


def blocks(language: str, section: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.split(f"## {section}")[1].partition("\n## ")[0], re.DOTALL)


@pytest.mark.check
def test_the_page_s_services_answer(tmp_path: Path) -> None:
    """What `make postgres` starts is started by the tests here, with the same code."""
    place = tmp_path / "example"
    shutil.copytree(ROOT / "docs" / "example", place)
    make, lines = blocks("sh", "Try it")
    assert make == "make postgres\n"
    certificates, *services = (shlex.split(line)[1:] for line in lines.splitlines())
    ports = {port: str(free_port()) for port in ("7443", "7444")}
    policy = place / "policy.toml"
    url = postgres_server.shared().new_database()
    text = policy.read_text().replace('"ledger/ledger.sqlite"', f'"{url}"').replace(":7443", f":{ports['7443']}")
    policy.write_text(text)
    assert command.fairwall(*certificates, cwd=place).returncode == 0
    with ExitStack() as running:
        log = running.enter_context((place / "log").open("w"))
        for words in services:
            start = [re.sub("744[34]", lambda port: ports[port[0]], word) for word in words]
            process = running.enter_context(
                forked_programs.Popen(
                    [sys.executable, "-m", "sim", *start], stdout=subprocess.PIPE, stderr=log, text=True, cwd=place
                )
            )
            running.callback(process.kill)
            assert process.stdout is not None
            assert process.stdout.readline(), (place / "log").read_text()
        (program,) = blocks("python", "Try it")
        told = forked_programs.run(
            [sys.executable, "-c", re.sub("744[34]", lambda port: ports[port[0]], program)],
            capture_output=True, text=True, cwd=place, timeout=300, check=False,
        )  # fmt: skip
        assert (told.returncode, told.stderr, told.stdout) == (0, "", "3.0\n")


def test_the_policy_that_is_shown_can_be_read(tmp_path: Path) -> None:
    (block,) = blocks("toml", "The policy")
    whole = (ROOT / "docs" / "example" / "policy.toml").read_text()
    own = whole.replace(whole[: whole.index("[data]")], block + "\n")
    (tmp_path / "policy.toml").write_text(own)
    shutil.copy(ROOT / "docs" / "example" / "loans.csv", tmp_path)
    place = read(tmp_path / "policy.toml").deployment
    assert str(place.ledger).startswith("postgresql://fairwall@db.example.org/")
    assert str(place.seal).startswith("postgresql://fairwall@other.example.org/")


@pytest.mark.check
def test_the_script_starts_a_server_and_says_where(tmp_path: Path) -> None:
    if postgres_server.programs() is None:
        pytest.skip("PostgreSQL is not installed")
    folder = postgres_server.own_folder()
    try:
        with forked_programs.Popen(
            [sys.executable, ROOT / "scripts" / "postgres.py", folder], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            told = process.stdout.readline()
            process.terminate()
        assert process.returncode == 0
        assert told == f'ledger = "postgresql://fairwall@/postgres?host={folder}"\n'
    finally:
        shutil.rmtree(folder)
