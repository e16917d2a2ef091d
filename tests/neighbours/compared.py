"""Plays two worlds, and finds the first thing by which somebody could tell one from the other."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

from compliance.answers import expectation
from compliance.deployment import answer_value
from compliance.noise.sampling import Seeded
from fairwall.errors import UserError
from tests.neighbours.drawn import Drawn
from tests.neighbours.outputs import Tape, fixed
from tests.neighbours.world import World, at_no_time, collected, logged

Leak: TypeAlias = Callable[[pytest.MonkeyPatch], object]
"""Changes a service so that it leaks."""


def first_difference(drawn: Drawn, folder: Path, leak: Leak | None = None) -> tuple[Any, Any] | None:
    """Return what the two worlds show where they differ first; None where nothing differs, or one is not served.

    Parameters
    ----------
    folder : Path
        Holds ``certificates/``; both worlds are played below it, one after the other in the same place.
    """
    here, tape = played(drawn, 0, folder, Tape(Seeded(np.random.default_rng(7))), leak)
    there, _ = played(drawn, 1, folder, Tape(Seeded(np.random.default_rng(8)), tape.drawn), leak)
    pairs = zip_longest(here, there) if here and there else ()
    return next((pair for pair in pairs if pair[0] != pair[1]), None)


def played(drawn: Drawn, number: int, folder: Path, tape: Tape, leak: Leak | None = None) -> tuple[list[Any], Tape]:
    """Play one world; all that is seen of it, nothing if its start is refused, and what was asked of noise."""
    world = World(_prepared(drawn, number, folder))
    with ExitStack() as playing:
        patch = playing.enter_context(pytest.MonkeyPatch.context())
        if leak is not None:
            leak(patch)
        for fewer in ("_ANSWERS", "_SHARES", "_REPEATS"):  # what an answer will be worth, told in less time
            patch.setattr(expectation, fewer, 1)
        if not drawn.is_whole:
            patch.setattr(answer_value, "worths", _untold)
        for entered in (fixed(tape), at_no_time(), logged(world.seen)):
            playing.enter_context(entered)
        try:
            world.start()
        except UserError:
            return [], tape
        try:
            with collected(world):
                for happen in drawn.events:
                    happen(world)
            world.look(draws=drawn.is_whole)
            world.stop()
        except UserError as error:  # the service has come to an end
            world.seen.append(str(error))
        expectation.expect.cache_clear()  # of few draws, and of this world
    return [*world.seen, ("noise", *tape.asked)], tape


def _untold(*_: object) -> Iterator[answer_value.Worth]:
    return iter(())


def _prepared(drawn: Drawn, number: int, folder: Path) -> Path:
    place = folder / "world"
    shutil.rmtree(place, ignore_errors=True)
    for name in ("ledger", "seal"):
        (place / name).mkdir(parents=True)
    (place / "credentials").symlink_to(folder / "certificates" / "compliance")
    for name, text in {"policy.toml": drawn.policy, "people.csv": drawn.people[number]}.items():
        (place / name).write_text(text)
        (place / name).chmod(0o600)
    return place
