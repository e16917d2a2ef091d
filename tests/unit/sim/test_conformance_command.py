"""A command of the tester's ends with all that it started, and one that cannot be started is one line."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from sim.conformance import command
from sim.conformance.inputs import ConformanceError

# A wrapper that waits for what it starts, and one that does not; what they start ignores its parent's end.
WAITS = "sh -c 'sleep 600 & echo started; wait'"
LEAVES = "sh -c 'sleep 600 & echo started; exec sleep 600'"


def started(text: str) -> tuple[subprocess.Popen[str], list[psutil.Process]]:
    process = command.start(text, {}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    return process, psutil.Process(process.pid).children(recursive=True)


def runs(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("text", [WAITS, LEAVES])
def test_what_a_wrapper_started_ends_with_it(text: str, signum: signal.Signals) -> None:
    process, children = started(text)
    try:
        assert any(runs(child) for child in children)
        command.end(process, signum)
        give_up = time.monotonic() + 300
        while any(map(runs, children)) and time.monotonic() < give_up:
            time.sleep(0.01)
        assert not any(map(runs, children))
    finally:
        for child in children:
            if runs(child):
                child.kill()


def test_a_server_has_time_to_end_after_its_wrapper(tmp_path: Path) -> None:
    (tmp_path / "server").write_text(
        "trap 'sleep 0.3; echo done > \"$1\"; exit' TERM\necho started\nwhile :; do sleep 0.05; done\n"
    )
    process, _ = started(f"sh -c 'sh {tmp_path}/server {tmp_path}/done & wait'")
    command.end(process, signal.SIGTERM)
    assert (tmp_path / "done").read_text() == "done\n"


def test_a_command_that_cannot_be_started_is_one_line() -> None:
    for text in ["", "nowhere {policy}", "sh -c 'open", "/"]:
        with pytest.raises(ConformanceError) as refused:
            command.start(text, {}, stderr=subprocess.DEVNULL)
        assert str(refused.value).startswith("--start: ")
