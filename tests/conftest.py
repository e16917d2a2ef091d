"""What holds for all tests."""

from __future__ import annotations

import gc
import os
from collections import defaultdict
from pathlib import Path

import pytest

from fairwall.rpc import kernels

pytest_plugins = ["tests.shards"]

# Before anything imports numpy: what tests expect they compute as the parties do, bit for bit. And several tests run at
# once on few cores, where threads of linear algebra spend most of their time waiting for one another.
kernels.fix()

# Twenty thousand tests are all kept, and looking through them for what could be thrown away takes half of the time of
# collecting them, and seconds later: so that is left out while they come, and what has come is not looked at any more.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """As many as keep this machine busy, and two more for each process that wants its processors at the start.

    So the tests have half of a machine that others use too: often a worker waits for a process that it started.
    """
    try:
        running = int(Path("/proc/loadavg").read_text().split()[3].partition("/")[0])
    except FileNotFoundError:  # not on Linux
        running = 1
    return min((os.cpu_count() or 1) + 1 + 2 * (running - 1), 16)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave all but n cases of a test marked ``few(n)`` to `make check`: those n are evenly spread, from the first."""
    cases: dict[str, list[tuple[pytest.Item, int]]] = defaultdict(list)
    for item in items:
        mark = item.get_closest_marker("few")
        if mark is not None:
            cases[item.nodeid.partition("[")[0]].append((item, mark.args[0]))
    for of_one in cases.values():
        kept = {place * len(of_one) // few for place, (_, few) in enumerate(of_one) if place < few}
        for place, (item, _) in enumerate(of_one):
            if place not in kept:
                item.add_marker("check")
