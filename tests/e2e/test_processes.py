"""The parties really are processes of their own, and none outlives its run."""

from __future__ import annotations

import re
import signal
from typing import Any

import psutil
import pytest

OTHERS = ("compliance", "adversary")
PARTIES = ("developer", *OTHERS)


def test_a_run_has_three_parties_recognisable_by_their_package(seen_run: Any) -> None:
    assert sorted(seen_run.parties) == sorted(PARTIES)
    children = psutil.Process(seen_run.command.pid).children(recursive=True)
    assert len(children) == len(PARTIES)


def test_no_command_line_or_environment_holds_a_secret(seen_run: Any) -> None:
    for name, party in seen_run.parties.items():
        assert party.cmdline()[1:] == ["-I", "-m", name, "--config", "-"]
        try:
            environment = party.environ()
        except psutil.AccessDenied:  # its memory is closed: only the superuser looks inside
            continue
        assert set(environment) <= {
            "LANG",
            "LC_CTYPE",
            "PATH",
            "TMPDIR",
            "OMP_NUM_THREADS",
            "OPENBLAS_NUM_THREADS",
            "MKL_NUM_THREADS",
        }
        assert not re.search(r"PRIVATE KEY|[0-9a-f]{32}|seed", " ".join(environment.values()), re.IGNORECASE)


def test_no_log_holds_a_key_or_a_row(seen_run: Any) -> None:
    for log in seen_run.folder.glob("*/logs/*.log"):
        text = log.read_text()
        assert "PRIVATE KEY" not in text
        assert not re.search(r"(\b[01]\b[ ,]+){8}", text)


@pytest.mark.check
@pytest.mark.parametrize("party", ["developer", *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)])
def test_a_party_that_is_killed_ends_the_run_with_its_name(live_run: Any, party: str) -> None:
    finished = live_run.trials()
    live_run.parties[party].kill()
    _, stderr = live_run.command.communicate(timeout=300)
    assert live_run.command.returncode == 1
    assert f"fairwall: {party} was killed by SIGKILL" in stderr
    assert "Traceback" not in stderr
    assert live_run.is_over()
    assert live_run.trials() >= finished


@pytest.mark.parametrize("signum", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_an_interrupted_run_leaves_nobody_and_keeps_its_trials(live_run: Any, signum: signal.Signals) -> None:
    live_run.command.send_signal(signum)
    _, stderr = live_run.command.communicate(timeout=300)
    assert live_run.command.returncode == 130
    assert "fairwall: interrupted" in stderr
    assert "Traceback" not in stderr
    assert live_run.is_over()
    assert live_run.trials() > 0
    (result,) = live_run.folder.glob("*/result.json")
    assert '"complete": false' in result.read_text()


@pytest.mark.check
def test_parties_leave_when_the_runner_is_killed(live_run: Any) -> None:
    live_run.command.kill()
    live_run.command.wait()
    live_run.wait_until_over(seconds=300)


@pytest.mark.slow
def test_a_party_that_hangs_is_ended_with_the_run(live_run: Any) -> None:
    live_run.parties["adversary"].suspend()
    live_run.command.send_signal(signal.SIGINT)
    live_run.command.communicate(timeout=300)
    assert live_run.is_over()
