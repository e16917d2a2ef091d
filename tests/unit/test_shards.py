"""All shards of what is slow have together everything, each once, and take about as long as one another."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import shards

ROOT = Path(__file__).parents[2]

tests = st.dictionaries(
    st.builds("tests/test_{}.py::test_{}".format, st.integers(0, 9), st.integers(0, 99)),
    st.floats(0, 300),
    max_size=60,
)


@given(tests, st.integers(1, 15))
def test_each_test_is_in_one_shard_and_no_shard_has_more_than_a_bundle_too_many(
    seconds: dict[str, float], number: int
) -> None:
    found = shards.shards(seconds, number)
    assert len(found) == number
    assert Counter(test for shard in found for test in shard) == Counter(seconds.keys())
    most = max(sum(map(seconds.__getitem__, shard)) for shard in found)
    assert most <= sum(seconds.values()) / number + max(shards.BUNDLE, *seconds.values(), 0) + 1e-6


@pytest.mark.parametrize("number", [1, 5, 12])
def test_what_pytest_is_left_with_is_everything_that_was_chosen(number: int) -> None:
    marks: dict[str, list[Any]] = {
        f"tests/test_{case % 3}.py::test_one[{case}]": [SimpleNamespace(kwargs={"seconds": case})] * (case % 2)
        for case in range(40)
    }
    left: list[str] = []
    for place in range(1, number + 1):
        dropped: list[Any] = []
        hook = SimpleNamespace(pytest_deselected=lambda items, dropped=dropped: dropped.extend(items))
        config: Any = SimpleNamespace(option=SimpleNamespace(shard=(place, number)), hook=hook)
        kept: list[Any] = [
            SimpleNamespace(nodeid=test, iter_markers=lambda _, marked=marked: iter(marked))
            for test, marked in marks.items()
        ]
        shards.pytest_collection_modifyitems(config, kept)
        assert len(kept) + len(dropped) == len(marks)
        left += [item.nodeid for item in kept]
    assert sorted(left) == sorted(marks)


@pytest.mark.parametrize("text", ["0/12", "13/12", "3", "3/0", "3/12/1", "-1/3"])
def test_a_shard_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="which shard of how many, such as 3/12"):
        shards.numbers(text)
    assert shards.numbers("12/12") == (12, 12)


def test_each_mutant_is_in_one_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("mutants", ROOT / "scripts" / "mutants.py")
    assert spec is not None
    assert spec.loader is not None
    mutants = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "mutants", mutants)  # where its dataclasses look for it
    spec.loader.exec_module(mutants)
    for size in (0, 1, 11, 120, 507):
        parts = [mutants.part(range(size), f"{place}/12") for place in range(1, 13)]
        assert [each for part in parts for each in part] == list(range(size))
        assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_all_that_is_slow_is_given_its_shard() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (recipe,) = re.findall(r"^slow: .*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    commands = recipe.splitlines()
    assert len(commands) == 3
    assert all("--shard $(SHARD)" in each for each in commands)
    assert "for k in {1..12}; do make slow SHARD=$k/12" in (ROOT / ".ci" / "nightly").read_text(encoding="utf-8")
