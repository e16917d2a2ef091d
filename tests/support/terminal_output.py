"""What a run comes to in a terminal, as ``fairwall run`` prints it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import RenderableType

from sim.games import GAMES
from sim.report.terminal import in_terminal
from sim.scenarios.sweep import Sweep


def terminal(sweep: Sweep, lines: Sequence[Mapping[str, Any]], summary: Sequence[Mapping[str, Any]]) -> RenderableType:
    return in_terminal(sweep.scenario.scenario.name, GAMES[sweep.game].tables(sweep, lines, summary))
