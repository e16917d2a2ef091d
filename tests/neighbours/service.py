"""Serves a deployment as `python -m compliance` does, its noise off a tape.

python -m tests.neighbours.service FIRST OWN LEAK --policy FILE ...

FIRST is the first world's tape (a file that is not there for that one itself), OWN is written as noise is drawn, and
LEAK names what is wrong with the service; "" for nothing.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compliance.__main__ import main  # first of all, for it says what libraries compute with

# isort: split
import pytest

from compliance.noise.sampling import System
from tests.neighbours.outputs import Tape, fixed
from tests.twins.leaks import LEAKS


@dataclass
class _Written(Tape):
    """A tape that is kept in a file, on which a service that is started again goes on."""

    path: Path = Path()

    def draw(self, public: tuple[Any, ...], sample: Callable[[], Any]) -> Any:
        output = super().draw(public, sample)
        with self.path.open("ab") as file:
            pickle.dump(self.drawn[-1], file)
        return output


def read(path: Path) -> list[tuple[tuple[Any, ...], Any]]:
    """Read a tape."""
    found = []
    if path.exists():
        with path.open("rb") as file:
            while file.peek(1):
                found.append(pickle.load(file))  # noqa: S301
    return found


def serve(first: Path, own: Path, leak: str) -> None:
    """Serve, as the command line goes on to say."""
    with pytest.MonkeyPatch.context() as patch:
        if leak:
            LEAKS[leak](patch)
        with fixed(_Written(System(), read(first), read(own), own)):
            main()


if __name__ == "__main__":
    _first, _own, _leak = sys.argv[1:4]
    del sys.argv[1:4]
    serve(Path(_first), Path(_own), _leak)
