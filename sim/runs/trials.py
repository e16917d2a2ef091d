"""The trials of a run: in which order they are played, which line is of which, and what they come to."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from sim.games import GAMES
from sim.games.game import Line
from sim.scenarios.sweep import Cell, Sweep

Lines: TypeAlias = list[dict[str, Any]]
"""The lines of one trial, one for each of its scenario's ``parts``."""

Turn: TypeAlias = tuple[Cell, int, int]
"""A trial to be played: its cell, its number within the cell, and its number within the run."""


def read_trials(path: Path) -> list[dict[str, Any]]:
    """Read a run's ``trials.jsonl``; none where there is none. A line that was cut off in the middle is no trial."""
    return whole_lines(path.read_bytes()) if path.exists() else []


def schedule(sweep: Sweep) -> Iterator[Turn]:
    """List the trials in the order they are played, each with its number within its cell and within the run."""
    number = 0
    for cell in sweep.cells:
        for trial in range(cell.scenario.scenario.trials):
            number += 1
            yield cell, trial, number


def key_of(line: Line, axes: Sequence[str]) -> str:
    """Name the trial that a line is of: by its number, its seed, and the values that tell its cell from others."""
    return json.dumps([line.get(key) for key in ("trial", "seed", *axes)])


def trial_key(cell: Cell, trial: int) -> str:
    """Name a trial of a cell in the same way."""
    return json.dumps([trial, cell.scenario.scenario.seed + trial, *cell.swept.values()])


def is_part(line: Line, part: Mapping[str, Any]) -> bool:
    """Whether a line is one part of its trial."""
    return all(line.get(key) == value for key, value in part.items())


def finished(sweep: Sweep, lines: Iterable[dict[str, Any]]) -> dict[int, Lines]:
    """Sort lines by trial, by its number in the run; one whose lines are not all there counts as not played."""
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
    """Sum up each cell of a sweep that has lines, part by part, from the lines of ``trials.jsonl`` alone."""
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
    """Write a line of a trial out: which one it is of, how long that took, and what its game says."""
    scenario = cell.scenario.scenario
    named = {"trial": trial, "seed": scenario.seed + trial, "game": scenario.game, "seconds": round(seconds, 4)}
    return {**named, **cell.swept, **line}


def ranges(numbers: Sequence[int]) -> str:
    """Write rising numbers as a list of ranges: 1-3, 7."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][-1] + 1:
            spans[-1] = [spans[-1][0], number]
        else:
            spans.append([number])
    return ", ".join("-".join(map(str, span)) for span in spans)


def alike(one: Any, other: Any, relative: float, absolute: float) -> bool:
    """Whether two values of lines are the same; floats up to a share of the larger one, or up to a difference."""
    tolerances = relative, absolute
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(alike(*pair, *tolerances) for pair in zip(one, other, strict=True))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key], *tolerances) for key in one)
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=relative, abs_tol=absolute)
    return bool(one == other)


def whole_lines(text: bytes) -> Lines:
    """Read lines of JSON objects; incomplete lines are left out."""
    lines = []
    for line in text[: text.rfind(b"\n") + 1].split(b"\n"):
        # A process that was killed, or a disk that was full, may have left half a line behind.
        with contextlib.suppress(ValueError):
            values = json.loads(line)
            if isinstance(values, dict):
                lines.append(values)
    return lines


def as_text(lines: Iterable[Line]) -> str:
    """Write lines of JSON objects."""
    return "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines)
