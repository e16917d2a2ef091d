"""What holds for all tests."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from fairwall.rpc import kernels

pytest_plugins = ["tests.support.shards"]

# Before anything imports numpy: what tests expect they compute as the parties do, bit for bit. And several tests run at
# once on few cores, where threads of linear algebra spend most of their time waiting for one another.
kernels.fix()

# All tests are kept, and looking through them for what could be thrown away takes a third of the time of collecting
# them, and seconds later: so that is left out while they come, and what has come is not looked at any more.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are processors: now and then a worker waits for a process that it started.

    However busy the machine is: each worker collects all tests, and more of them only wait for one another.
    """
    return (os.cpu_count() or 1) + 1


def chosen(config: pytest.Config, marks: Iterable[str]) -> bool:
    """Whether ``-m`` may choose a test with these marks, as far as ``slow`` and ``check`` tell, joined by "and"."""
    named = re.findall(r"(not )?\b(slow|check)\b", str(config.getoption("markexpr")))
    return all((mark in marks) != bool(negated) for negated, mark in named)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return True if collection_path.name == "slow" and not chosen(config, ["slow"]) else None


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """Make no test that would only be deselected: there are more of these than of those that run.

    Of a test marked ``few(n)`` all but n cases are left to `make check`: those n are evenly spread, from the first.
    """
    yield
    calls, marks = metafunc._calls, {mark.name for mark in metafunc.definition.iter_markers()}
    if (few := metafunc.definition.get_closest_marker("few")) is not None:
        kept = {place * len(calls) // few.args[0] for place in range(min(few.args[0], len(calls)))}
        for place, call in enumerate(calls):
            if place not in kept:
                call.marks.append(pytest.mark.check.mark)
    stay = [call for call in calls if chosen(metafunc.config, marks | {mark.name for mark in call.marks})]
    calls[:] = stay or calls[:1]  # pytest makes one of a test without cases; what is not chosen is deselected then
