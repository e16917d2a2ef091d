"""[LD]'s figures of a run: fairness, utility and guesses along epsilon, a panel for each split, a line a protocol.

[LD]: Arcolezi, Makhlouf, Palamidessi, DBSec 2023: figures 2 to 7, and 8 to 13 of attributes that are drawn at random.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.lines import Line2D

from fairwall.laws.local import CLEAN, LOCAL_LAWS
from sim.games.release.questions import K_BASED, UNIFORM
from sim.games.release.report.figures_of import FIGURES, CellFigure
from sim.games.release.report.verdicts import protocol_title
from sim.games.release.scenario import CONSTANT, CONTROLS, DROPPED
from sim.games.release.seeds import Figures
from sim.report.drawing import BLACK, COLOURS, DASHES, GREY, MARKERS, Figure, canvas_svg
from sim.report.estimates import FEWEST
from sim.report.notation import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_ROWS = {
    "fairness": ("Fairness", ("di", "sp", "eo", "oad")),
    "utility": ("Utility", ("acc", "f1", "auc_hard", "recall", "auc")),
    "guesses": ("Profiles and guesses", ("consistent", "leakage_release", "leakage", "leakage_mixture")),
}
"""Each figure's rows, in the paper's order."""

_COMMONER = "commoner"
_CONTROLS: Mapping[str, tuple[str, dict[str, Any]]] = {
    CLEAN: ("clean (NonDP)", {"color": BLACK, "ls": "-"}),
    DROPPED: ("columns dropped", {"color": BLACK, "ls": DASHES[1]}),
    CONSTANT: ("constant model", {"color": GREY, "ls": ":"}),
    _COMMONER: ("commoner group for all", {"color": GREY, "ls": "-"}),
}
_GUESSES = ("leakage_release", "leakage", "leakage_mixture")
_LABELS = {
    "auc_hard": "AUC*, %",
    "consistent": "consistent, %",
    "leakage_release": "from release, %",
    "leakage": "from all, %",
    "leakage_mixture": "and queries, %",
}
"""Shorter than the table's."""

_NOTES = {
    "fairness": "SPD, EOD and OAD: advantaged less disadvantaged; DI: disadvantaged over advantaged.",
    "utility": "AUC*: on decisions, as the paper has it.",
    "guesses": "Consistent: released as one value a column. From release, from all: who is advantaged, guessed right.",
}

_FIRST = (UNIFORM, K_BASED)
"""The paper's splits, from left to right."""

_PANEL = (2.55, 1.55)
"""How wide and high a panel is, in inches."""

_SPREAD = 0.36
"""Over how much of the way to the next epsilon the protocols stand beside one another."""


@dataclass(frozen=True)
class _Point:
    mean: float
    error: float | None


_Lines = Mapping[tuple[str, str], Mapping[float, _Point]]
"""By split and protocol, along epsilon. Controls have no split, and an infinite epsilon."""


def draw(figures: Figures, data: str, beside: Figures | None = None, *, within: str = "") -> tuple[Figure, ...]:
    """Draw one data set where epsilon is swept.

    Parameters
    ----------
    figures : mapping
        A run's, by cell and seed.
    data : str
        Which of its data sets.
    beside : mapping, optional
        Published ones, dashed and hollow in the same colours. Only figures that they have are drawn then.
    within : str
        What tells this part of the run from others.
    """
    cells = [cell for cell in figures if cell.data == data and cell.protocol not in CONTROLS]
    epsilons = sorted({cell.epsilon for cell in cells})
    played = dict.fromkeys(cell.split for cell in cells)
    splits = [*(split for split in _FIRST if split in played), *(split for split in played if split not in _FIRST)]
    if len(epsilons) < 2:
        return ()
    drawn = []
    for name, (title, keys) in _ROWS.items():
        rows = {}
        for key in keys:
            ours, theirs = (_lines(side or {}, data, key) for side in (figures, beside))
            if name == "guesses":
                ours = {**_without_controls(ours), **(_commoner(figures, data) if key in _GUESSES else {})}
            if any(split for split, _ in (theirs if beside is not None else ours)):
                rows[next(figure for figure in FIGURES if figure.key == key)] = (ours, theirs)
        if rows:
            where = f"{data}, {within}" if within else data
            drawn.append(_figure(name, f"{title} along ε: {where}", rows, splits, epsilons))
    return tuple(drawn)


def _lines(figures: Figures, data: str, key: str) -> _Lines:
    lines: dict[tuple[str, str], dict[float, _Point]] = {}
    for cell, seeds in figures.items():
        values = [told[key] for told in seeds.values() if key in told]
        if cell.data == data and values:
            error = float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) >= FEWEST else None
            lines.setdefault((cell.split, cell.protocol), {})[cell.epsilon] = _Point(float(np.mean(values)), error)
    return lines


def _without_controls(lines: _Lines) -> _Lines:
    """Leave out the controls: where nothing is released, or all as it is, there is nothing to guess."""
    return {line: points for line, points in lines.items() if line[0]}


def _commoner(figures: Figures, data: str) -> _Lines:
    """Give what anybody guesses."""
    lines = _without_controls(_lines(figures, data, "leakage_baseline"))
    levels = [point for points in lines.values() for point in points.values()]
    return {("", _COMMONER): {math.inf: levels[0]}} if levels else {}


def _figure(
    name: str,
    title: str,
    rows: Mapping[CellFigure, tuple[_Lines, _Lines]],
    splits: Sequence[str],
    epsilons: Sequence[float],
) -> Figure:
    protocols = [each for each in LOCAL_LAWS if any(each == line[1] for ours, _ in rows.values() for line in ours)]
    beside = any(theirs for _, theirs in rows.values())

    def paint(canvas: Canvas) -> None:
        grid = canvas.subplots(len(rows), len(splits), sharex=True, sharey="row", squeeze=False)
        for axes_row, (figure, (ours, theirs)) in zip(grid, rows.items(), strict=True):
            for axes, split in zip(axes_row, splits, strict=True):
                _panel(axes, figure.scale, split, protocols, epsilons, ours, theirs)
            # The constant model is often far away, and would press the lines together.
            limits = axes_row[0].get_ylim()
            for axes in axes_row:
                _level(axes, figure.scale, CONSTANT, ours)
            axes_row[0].set_ylim(limits)
            axes_row[0].set_ylabel(_LABELS.get(figure.key, figure.head))
        for axes, split in zip(grid[0], splits, strict=True):
            axes.set_title(split)
        for axes in grid[-1]:
            axes.set_xlabel("ε")
        controls = [each for each in _CONTROLS if any(("", each) in ours for ours, _ in rows.values())]
        canvas.legend(
            handles=list(_legend(protocols, controls, beside=beside)),
            loc="outside upper center",
            ncols=5 if len(splits) < 3 else 6,
            fontsize=8,
            columnspacing=1.0,
            handlelength=2.2,
        )

    inches = (0.5 + _PANEL[0] * max(2, len(splits)), 1.1 + _PANEL[1] * len(rows))
    said = [f"Means over seeds; bars are standard errors, from {FEWEST} seeds on."]
    said += ["Dashed and hollow: published."] if beside else []
    caption = " ".join([*said, "A level beyond a panel is left out.", _NOTES[name]])
    ident = "".join(letter if letter.isalnum() else "-" for letter in f"{name}-{title.partition(': ')[2]}").lower()
    svg = canvas_svg(ident, paint, inches)
    return Figure(ident, title, caption, _alt(title, rows, epsilons), svg, wide=len(splits) > 2)


def _panel(
    axes: Axes,
    scale: float,
    split: str,
    protocols: Sequence[str],
    epsilons: Sequence[float],
    ours: _Lines,
    theirs: _Lines,
) -> None:
    for place, protocol in enumerate(protocols):
        aside = _SPREAD * ((place + 0.5) / len(protocols) - 0.5)
        for side, hollow in ((theirs, True), (ours, False)):
            points = sorted(side.get((split, protocol), {}).items())
            if points:
                axes.errorbar(
                    [epsilons.index(epsilon) + aside for epsilon, _ in points if epsilon in epsilons],
                    [scale * point.mean for epsilon, point in points if epsilon in epsilons],
                    [scale * (point.error or 0) for epsilon, point in points if epsilon in epsilons],
                    **style_of(protocol, hollow=hollow),
                )
    for control in (CLEAN, DROPPED, _COMMONER):
        _level(axes, scale, control, ours)
    axes.set_xticks(range(len(epsilons)), [number(epsilon) for epsilon in epsilons], fontsize=8)
    axes.set_xlim(-0.4, len(epsilons) - 0.6)


def _level(axes: Axes, scale: float, control: str, lines: _Lines) -> None:
    for point in lines.get(("", control), {}).values():
        axes.axhline(scale * point.mean, lw=1.1, zorder=1, **_CONTROLS[control][1])


def style_of(protocol: str, *, hollow: bool) -> dict[str, Any]:
    """Give a protocol's style: the same in every figure, whichever others are played."""
    again, place = divmod(list(LOCAL_LAWS).index(protocol), len(COLOURS))
    style: dict[str, Any] = {
        "color": COLOURS[place],
        "marker": MARKERS[(place + 3 * again) % len(MARKERS)],
        "ls": DASHES[2 * again],
        "ms": 3.5,
        "lw": 1.2,
        "elinewidth": 0.8,
    }
    return style | ({"mfc": "none", "mew": 0.7, "ls": DASHES[5], "lw": 0.9} if hollow else {})


def _legend(protocols: Sequence[str], controls: Sequence[str], *, beside: bool) -> Iterator[Line2D]:
    for protocol in protocols:
        style = style_of(protocol, hollow=False)
        style.pop("elinewidth")
        yield Line2D([], [], label=protocol_title(protocol), **style)
    for control in controls:
        label, line = _CONTROLS[control]
        yield Line2D([], [], lw=1.1, label=label, **line)
    if beside:
        yield Line2D([], [], color=GREY, marker="o", mfc="none", ms=3.5, ls=DASHES[5], lw=0.9, label="published")


def _alt(title: str, rows: Mapping[CellFigure, tuple[_Lines, _Lines]], epsilons: Sequence[float]) -> str:
    """Say for each row between which values its lines run."""
    said = []
    for figure, (ours, _) in rows.items():
        means = [figure.scale * point.mean for (split, _), points in ours.items() if split for point in points.values()]
        clean = ours.get(("", CLEAN), {}).get(math.inf)
        level = "" if clean is None else f", clean {figure.scale * clean.mean:.{figure.digits}f}"
        said.append(f"{figure.head} from {min(means):.{figure.digits}f} to {max(means):.{figure.digits}f}{level}")
    return f"Chart. {title}, from {epsilons[0]:g} to {epsilons[-1]:g}. {'; '.join(said)}."
