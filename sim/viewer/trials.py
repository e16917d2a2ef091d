"""The trials of a run on the page's first screen: cell, outcome, and gaps in the record."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sim.games import GAMES
from sim.games.game import Line
from sim.replay.recorded import Session
from sim.report.columns import Measure
from sim.report.notation import setting
from sim.runs.trials import finished, read_trials, schedule
from sim.scenarios.sweep import Sweep
from sim.transcripts.captions import number

_SHADES = 5
"""Number of shades of an outcome; the page's style has a colour for each."""


def cells_of(sweep: Sweep) -> list[str]:
    """Return the names of cells: the swept values, or the scenario's name if there are none."""
    return [
        ", ".join(f"{key.rpartition('.')[2]} {_shown(value)}" for key, value in cell.swept.items())
        or cell.scenario.scenario.name
        for cell in sweep.cells
    ]


def _shown(value: Any) -> str:
    return " and ".join(map(setting, value)) if isinstance(value, list | tuple) else setting(value)


def outcomes(folder: Path, sweep: Sweep) -> dict[str, dict[str, Any]]:
    """Return each trial's cell, number and outcome, by deal, and whether it was finished."""
    lines = finished(sweep, read_trials(folder / "trials.jsonl"))
    headline = GAMES[sweep.game].headline
    cells = {id(cell): place for place, cell in enumerate(sweep.cells)}
    return {
        f"deal-{position}": {
            "cell": cells[id(cell)],
            "trial": trial,
            "finished": position in lines,
            **_outcome(headline, lines.get(position, ())),
        }
        for cell, trial, position in schedule(sweep)
    }


def _outcome(headline: Measure[Line] | None, lines: Sequence[Line]) -> dict[str, Any]:
    """Return the largest of a trial's figures: a trial may have a line for each attack."""
    if headline is None or headline.scale is None:
        return {}
    least, most = headline.scale
    found = [line.get(headline.name) for line in lines]
    values = [value for value in found if isinstance(value, int | float) and math.isfinite(value)]
    if not values:
        return {}
    value = float(max(values))
    share = (value - least) / (most - least)
    return {"value": f"{number(value)}{headline.unit}", "step": min(max(int(_SHADES * share), 0), _SHADES - 1)}


def record_of(scripts: Mapping[str, Any] | Session) -> list[str]:
    """Return the gaps in a session's record: "open" if it breaks off, "digest only" if arrays lack bytes."""
    known = []
    if not all(script.is_whole for script in scripts.values()):
        known.append("open")
    if any(script.header is not None and script.header.record == "digest" for script in scripts.values()):
        known.append("digest only")
    return known
