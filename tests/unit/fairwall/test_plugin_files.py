"""A file of plug-ins may hold several kinds: each process runs of it what its own kind needs, and once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairwall import plugins
from fairwall.errors import UserError
from sim.privacy_audit.catalogue import prepare

FILE = """
import math
from compliance.no_such_part import Release  # what this process may not read
from dataclasses import dataclass

RUN = []
RUN.append("begun")

@dataclass
class Answer(Release):
    scale: float

class Guess:
    scale = 2.0
    def read(self):
        return math.sqrt(self.scale)

def play(hand):
    scale, Release = hand, 3
    return scale

for each in ("attacks",):
    RUN.append(each)

MECHANISMS = {"noisy": Answer(1.0)}
ATTACKS = {"guess": Guess(), "ran": RUN}
STRATEGIES = {"mine": play, "also": Guess}
"""


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "several.py"
    path.write_text(FILE + f"# {tmp_path}\n")
    plugins.offer([path])
    yield path
    plugins.offer()


def loaded(kind: str, name: str) -> object:
    plugin = plugins.find(kind, name)
    assert plugin is not None
    return plugin.load()


def test_b3_each_kind_runs_without_what_the_others_import(file: Path) -> None:
    guess, strategy = loaded("attacks", "guess"), loaded("strategies", "mine")
    assert guess.read() == 2.0**0.5  # type: ignore[attr-defined]
    assert strategy(7) == 7  # type: ignore[operator]
    assert loaded("strategies", "also") is type(guess)  # the file is one module
    assert loaded("attacks", "ran") == ["begun", "attacks"]
    with pytest.raises(plugins.PluginError, match=r"plug-in noisy \(mechanisms, several.py\): ModuleNotFoundError"):
        loaded("mechanisms", "noisy")


def test_b3_what_is_not_here_is_said_once_with_what_to_do(file: Path) -> None:
    record = {"kind": "mechanisms", "name": "gone", "source": "gone.py", "digest": "0" * 64}
    assert plugins.missing([record, record | {"kind": "strategies"}]) == (
        "plug-in gone (mechanisms, gone.py): was played, and is not here: install it, or give its file with --plugin"
    )
    assert plugins.missing([record | {"name": "noisy"}]) == ""


OWN = """
class Needs:
    def __init__(self, scale):
        pass
class Costs:
    def cost(self, epsilon, delta):
        pass
class Half:
    def cost(self, epsilon, delta):
        return self.law
    refuses = cost
"""


@pytest.mark.parametrize("name", ["Needs", "Costs", "Half"])
def test_a_class_that_is_no_mechanism_is_one_line(name: str, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    with pytest.raises(UserError) as refused:
        prepare(f"{tmp_path / 'own.py'}:{name}")
    assert f"own.py:{name} " in str(refused.value)
    assert "\n" not in str(refused.value)
