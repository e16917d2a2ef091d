"""Runs one shard of the tests: ``pytest -m slow --shard 3/12``. A plugin of pytest.

Which tests a shard has follows from all that were chosen, so that the shards together have each of them once, whoever
adds one. Cases of a module stay together while they take at most `BUNDLE` seconds: they share what the module starts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import pytest

SECONDS = 4.0
"""How many seconds of a processor a case takes whose mark does not say so, ``slow(seconds=...)``."""
BUNDLE = 120.0


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shard", metavar="K/N", type=numbers, help="the K-th of N parts of what was chosen")


def numbers(text: str) -> tuple[int, int]:
    """Read which shard of how many, such as 3/12."""
    found = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", text)
    if found is None or int(found[1]) > int(found[2]):
        raise ValueError(f"{text}: which shard of how many, such as 3/12")
    return int(found[1]), int(found[2])


def _file(test: str) -> str:
    return test.partition("::")[0]


def bundles(seconds: Mapping[str, float]) -> Iterable[list[str]]:
    """Part tests, named as pytest names them, into what one shard runs."""
    of_file: dict[str, list[list[str]]] = {}
    filled = dict[str, float]()
    for test, takes in seconds.items():
        file = _file(test)
        if file not in of_file or filled[file] + takes > BUNDLE:
            of_file.setdefault(file, []).append([])
            filled[file] = 0.0
        of_file[file][-1].append(test)
        filled[file] += takes
    return [bundle for parts in of_file.values() for bundle in parts]


def shards(seconds: Mapping[str, float], number: int) -> list[set[str]]:
    """Part tests into shards that take about as long: the longest bundle first, each into the shard that has least."""
    takes = {tuple(bundle): sum(map(seconds.__getitem__, bundle)) for bundle in bundles(seconds)}
    filled = [(0.0, place) for place in range(number)]
    parts: list[set[str]] = [set() for _ in range(number)]
    for bundle in sorted(takes, key=lambda bundle: (-takes[bundle], bundle)):
        already, place = min(filled)
        filled[place] = already + takes[bundle], place
        parts[place].update(bundle)
    return parts


def seconds_of(item: pytest.Item) -> float:
    """What a case takes, by the nearest of its marks that says so."""
    said = (mark.kwargs["seconds"] for mark in item.iter_markers("slow") if "seconds" in mark.kwargs)
    return float(next(said, SECONDS))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the shard's tests, of those that `-m` and `-k` have left; files of long ones first, so that none is last."""
    if config.option.shard is None:
        return
    place, number = config.option.shard
    seconds = {item.nodeid: seconds_of(item) for item in items}
    kept = shards(seconds, number)[place - 1]
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in kept])
    longest = dict[str, float]()
    for test in kept:
        longest[_file(test)] = max(longest.get(_file(test), 0.0), seconds[test])
    items[:] = sorted((item for item in items if item.nodeid in kept), key=lambda item: -longest[_file(item.nodeid)])
