"""The trials of a run: their order, the lines that belong to each, their summary, and shards of them."""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from fairwall.errors import UserError
from sim.games import GAMES
from sim.games.game import Line
from sim.scenarios.sweep import Cell, Sweep

Lines: TypeAlias = list[dict[str, Any]]
"""The lines of one trial, one for each of its scenario's ``parts``."""

Turn: TypeAlias = tuple[Cell, int, int]
"""A trial to be played: its cell, its number within the cell, and its number within the run."""


def read_trials(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a run's ``trials.jsonl``; empty without the file. A cut-off line is left out."""
    return whole_lines(path.read_bytes()) if path.exists() else []


def schedule(sweep: Sweep) -> Iterator[Turn]:
    """Yield the trials in the order of play, each with its number within its cell and within the run."""
    number = 0
    for cell in sweep.cells:
        for trial in range(cell.scenario.scenario.trials):
            number += 1
            yield cell, trial, number


def key_of(line: Line, axes: Sequence[str]) -> str:
    """Return the key of a line's trial: its number, its seed, and its cell's swept values."""
    return json.dumps([line.get(key) for key in ("trial", "seed", *axes)])


def trial_key(cell: Cell, trial: int) -> str:
    """Return the key of a cell's trial, equal to `key_of` of its lines."""
    return json.dumps([trial, cell.scenario.scenario.seed + trial, *cell.swept.values()])


def is_part(line: Line, part: Mapping[str, Any]) -> bool:
    """Return whether a line has these values, such as those of a part of a trial, or of a cell."""
    return all(line.get(key) == value for key, value in part.items())


def finished(sweep: Sweep, lines: Iterable[dict[str, Any]]) -> dict[int, Lines]:
    """Return the lines of finished trials, by number in the run; a trial with missing lines counts as not played."""
    kept: dict[str, Lines] = {}
    for line in lines:
        kept.setdefault(key_of(line, sweep.scenario.axes), []).append(line)
    found = {}
    for cell, trial, number in schedule(sweep):
        own, parts = kept.get(trial_key(cell, trial), []), cell.scenario.parts
        if len(own) == len(parts) and all(map(is_part, own, parts)):
            found[number] = own
    return found


def summarise(sweep: Sweep, lines: Sequence[Line]) -> list[Line]:
    """Return the summary of each cell that has lines, part by part, from the lines of ``trials.jsonl`` alone."""
    game = GAMES[sweep.game]
    summary = []
    for cell in sweep.cells:
        of_cell = [line for line in lines if is_part(line, cell.swept)]
        for part in cell.scenario.parts:
            own = [line for line in of_cell if is_part(line, part)]
            if own:
                summary.append(game.summarise(cell.swept, own))
    return summary


def written(cell: Cell, trial: int, line: Line, seconds: float) -> dict[str, Any]:
    """Return a line of a trial with the trial's number, seed, game and seconds, and the cell's swept values."""
    scenario = cell.scenario.scenario
    named = {"trial": trial, "seed": scenario.seed + trial, "game": scenario.game, "seconds": round(seconds, 4)}
    return {**named, **cell.swept, **line}


def ranges(numbers: Sequence[int]) -> str:
    """Return rising numbers as a list of ranges: 1-3, 7."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][-1] + 1:
            spans[-1] = [spans[-1][0], number]
        else:
            spans.append([number])
    return ", ".join("-".join(map(str, span)) for span in spans)


def alike(one: Any, other: Any, relative: float, absolute: float) -> bool:
    """Return whether two values of lines are equal; floats up to a relative or an absolute difference."""
    tolerances = relative, absolute
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(alike(*pair, *tolerances) for pair in zip(one, other, strict=True))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key], *tolerances) for key in one)
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=relative, abs_tol=absolute)
    return bool(one == other)


def whole_lines(text: bytes) -> Lines:
    """Return the JSON objects of lines of text; incomplete lines are left out."""
    lines = []
    for line in text[: text.rfind(b"\n") + 1].split(b"\n"):
        # A killed process or a full disk may have left half a line.
        with contextlib.suppress(ValueError):
            values = json.loads(line)
            if isinstance(values, dict):
                lines.append(values)
    return lines


def as_text(lines: Iterable[Line]) -> str:
    """Return the text of lines of JSON objects."""
    return "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines)


class ShardError(UserError):
    """A number of no shard. Its text is one line that names the option."""


@dataclass(frozen=True)
class Shard:
    """Part ``number``, from 1, of ``of`` parts of a run: every ``of``-th trial, so trials of every cell."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Parse a shard such as 2/3, or raise `ShardError`."""
        found = re.fullmatch(r"([0-9]{1,7})/([0-9]{1,7})", text)
        if found is None:
            raise ShardError(f"--shard: {text!r}: is to be NUMBER/OF, as 2/3")
        number, of = (int(part) for part in found.groups())
        if not 1 <= number <= of:
            raise ShardError(f"--shard: {text}: of {of} shards the number is from 1 to {of}")
        return cls(number, of)

    def require_key(self, sweep: Sweep, key: Path | None) -> None:
        """Raise `ShardError` for a part with random draws that the other parts cannot share: there is no common key."""
        if self.of > 1 and key is None and sweep.scenario.scenario.secret == "random":  # noqa: S105 - the name of a mode
            raise ShardError(
                f'--shard: with scenario.secret = "random" all {self.of} shards are drawn from one key: give each '
                "the same file of 32 random bytes by --secret"
            )

    def turns(self, turns: Iterable[Turn]) -> Iterator[Turn]:
        """Return the trials of a run that are in the shard."""
        return (turn for turn in turns if (turn[2] - self.number) % self.of == 0)

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


WHOLE = Shard(1, 1)
"""The whole run."""
