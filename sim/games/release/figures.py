"""Figures 2 to 13 of [LD] for a run: fairness, utility and guesses along epsilon, with a panel for each split.

[LD]: Arcolezi, Makhlouf, Palamidessi, DBSec 2023.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from matplotlib.lines import Line2D

from fairwall.laws.local import CLEAN, LOCAL_LAWS
from sim.games.game import Line
from sim.games.release.columns import FACTORS, MEASURES, protocol_title
from sim.games.release.questions import K_BASED, UNIFORM
from sim.games.release.scenario import CONSTANT, CONTROLS, DROPPED, QUERIES_SHARE
from sim.games.release.seeds import Figures
from sim.report.drawing import BLACK, COLOURS, DASHES, GREY, MARKERS, Figure, MarkStyle, looks
from sim.report.estimates import FEWEST
from sim.report.line_plot import Axis, Curve, Level, LinePanel, line_plot
from sim.report.notation import number

_AXES = {
    "fairness": dict.fromkeys(("di", "sp", "eo", "oad"), ""),
    "utility": {"acc": "", "f1": "", "auc_hard": "AUC*, %", "recall": "", "auc": ""},
    "guesses": {
        "consistent": "consistent, %",
        "leakage_release": "from release, %",
        "leakage": "from all, %",
        "leakage_mixture": "and queries, %",
    },
}
"""Each figure's rows, in the paper's order, with a short name where the table's head is too long."""

_TITLES = {"fairness": "Fairness", "utility": "Utility", "guesses": "Profiles and guesses"}
_NOTES = {
    "fairness": "SPD, EOD and OAD: advantaged less disadvantaged; DI: disadvantaged over advantaged.",
    "utility": "AUC*: on decisions, as the paper has it.",
    "guesses": "Consistent: released as one value a column. From release, from all: who is advantaged, guessed right.",
}
_COMMONER = "commoner"
_CONTROLS = {
    CLEAN: Level(0.0, "clean (NonDP)", BLACK, "-", 1.1),
    DROPPED: Level(0.0, "columns dropped", BLACK, DASHES[1], 1.1),
    # Often far away: within the panel it would squeeze the lines.
    CONSTANT: Level(0.0, "constant model", GREY, ":", 1.1, beyond=True),
    _COMMONER: Level(0.0, "commoner group for all", GREY, "-", 1.1),
}
_FIRST = (UNIFORM, K_BASED)
"""The paper's splits, from left to right."""

_SPREAD = 0.36
"""Width over which the protocols stand side by side, as a fraction of the distance to the next epsilon."""

_Lines = Mapping[tuple[str, str], Mapping[float, tuple[float, float]]]
"""By split and protocol (controls have no split), along epsilon: mean and standard error, 0 with too few seeds."""


def look_of(protocol: str) -> MarkStyle:
    """Return a protocol's look, the same in every figure."""
    again, place = divmod(list(LOCAL_LAWS).index(protocol), len(COLOURS))
    return MarkStyle(COLOURS[place], MARKERS[(place + 3 * again) % len(MARKERS)], DASHES[2 * again], size=3.5)


def draw(figures: Figures, data: str, published: Figures | None = None, *, within: str = "") -> tuple[Figure, ...]:
    """Draw one data set of a run's figures, named `within`, where epsilon is swept.

    `published` figures are drawn dashed and hollow in the same colours, and then only the metrics that they have.
    """
    cells = [cell for cell in figures if cell.data == data and cell.protocol not in CONTROLS]
    epsilons = sorted({cell.epsilon for cell in cells})
    played = dict.fromkeys(cell.split for cell in cells)
    splits = [*(split for split in _FIRST if split in played), *(split for split in played if split not in _FIRST)]
    if len(epsilons) < 2:
        return ()
    drawn = []
    for name, axes in _AXES.items():
        sides = {key: [_lines(side or {}, data, key) for side in (figures, published)] for key in axes}
        rows = {key: both for key, both in sides.items() if any(split for split, _ in both[published is not None])}
        if rows:
            drawn.append(_figure(name, f"{data}, {within}" if within else data, rows, splits, epsilons))
    return tuple(drawn)


def _lines(figures: Figures, data: str, key: str) -> _Lines:
    lines: dict[tuple[str, str], dict[float, tuple[float, float]]] = {}
    for cell, seeds in figures.items():
        values = FACTORS[key] * np.array([told[key] for told in seeds.values() if key in told])
        if cell.data == data and len(values):
            error = values.std(ddof=1) / math.sqrt(len(values)) if len(values) >= FEWEST else 0.0
            lines.setdefault((cell.split, cell.protocol), {})[cell.epsilon] = float(values.mean()), float(error)
    if key not in _AXES["guesses"]:
        return lines
    # Controls give nothing to guess from; the level is a guess of the commoner group.
    guesses: _Lines = {line: points for line, points in lines.items() if line[0]}
    known = _lines(figures, data, "leakage_baseline") if key != "consistent" else {}
    levels = [point for (split, _), points in known.items() if split for point in points.values()]
    return {**guesses, ("", _COMMONER): {math.inf: levels[0]}} if levels else guesses


def _figure(
    name: str, where: str, rows: Mapping[str, Sequence[_Lines]], splits: Sequence[str], epsilons: Sequence[float]
) -> Figure:
    protocols = [each for each in LOCAL_LAWS if any(each == line[1] for ours, _ in rows.values() for line in ours)]
    beside = any(theirs for _, theirs in rows.values())

    def curves(ours: _Lines, theirs: _Lines, split: str) -> Iterator[Curve]:
        for place, protocol in enumerate(protocols):
            aside, look = _SPREAD * ((place + 0.5) / len(protocols) - 0.5), look_of(protocol)
            for side, own in ((theirs, replace(look, dash=DASHES[5], hollow=True)), (ours, look)):
                points = [(e, *point) for e, point in sorted(side.get((split, protocol), {}).items()) if e in epsilons]
                if points:
                    style = {"mew": 0.7, "lw": 0.9} if own.hollow else {"lw": 1.2}
                    at = [(epsilons.index(epsilon) + aside, mean) for epsilon, mean, _ in points]
                    label = "" if own.hollow else protocol_title(protocol)
                    yield Curve(at, own, label, bars=[error for *_, error in points], style=style)

    panels: list[list[LinePanel]] = []
    said = []
    for key, (ours, theirs) in rows.items():
        at = {control: mean for (split, control), points in ours.items() if not split for mean, _ in points.values()}
        levels = [replace(level, at=at[control]) for control, level in _CONTROLS.items() if control in at]
        panels.append([LinePanel([*curves(ours, theirs, split)], levels, "" if panels else split) for split in splits])
        head, digits = MEASURES[key].head, MEASURES[key].digits
        means = [mean for (split, _), points in ours.items() if split for mean, _ in points.values()]
        clean = f", clean {at[CLEAN]:.{digits}f}" if CLEAN in at else ""
        said.append(f"{head} from {min(means):.{digits}f} to {max(means):.{digits}f}{clean}")
    title = f"{_TITLES[name]} along ε: {where}"
    published = "Dashed and hollow: published. " if beside else ""
    hollow = Line2D([], [], color=GREY, marker="o", mfc="none", ms=3.5, ls=DASHES[5], lw=0.9, label="published")
    return line_plot(
        "".join(letter if letter.isalnum() else "-" for letter in f"{name}-{where}").lower(),
        title,
        f"Means over seeds; bars are standard errors, from {FEWEST} seeds on. {published}A level beyond a panel is "
        f"left out. {_NOTES[name]}",
        f"Chart. {title}, from {epsilons[0]:,g} to {epsilons[-1]:,g}. {'; '.join(said)}.",
        panels,
        Axis("ε", ticks=dict(enumerate(map(number, epsilons))), low=-0.4, high=len(epsilons) - 0.6),
        [Axis(_AXES[name][key] or MEASURES[key].head) for key in rows],
        inches=(0.5 + 2.55 * max(2, len(splits)), 1.1 + 1.55 * len(rows)),
        wide=len(splits) > 2,
        above=True,
        columns=5 if len(splits) < 3 else 6,
        more=[hollow] if beside else [],
    )


_GUESSES = {"leakage_release": "release alone", "leakage": "and features, labels", "leakage_mixture": "and queries"}


def along_shares(summary: Sequence[Line]) -> tuple[Figure, ...]:
    """Draw the share of right guesses along the share of epsilon for queries, a panel for each epsilon; no controls."""
    by_epsilon: dict[float, list[Line]] = {}
    for cell in summary:
        epsilon = float(cell.get("release.epsilon", "nan"))
        if epsilon != math.inf and any(cell.get(key) is not None for key in _GUESSES):
            by_epsilon.setdefault(epsilon, []).append(cell)
    if not by_epsilon:
        return ()
    panels, said = [], []
    for epsilon, cells in by_epsilon.items():
        curves = []
        for (key, label), look in zip(_GUESSES.items(), looks(_GUESSES).values(), strict=True):
            points = _means(cells, key)
            curves.append(Curve(points, look, label))
            if points:
                ends = f"{points[0][1]:.1f} to {points[-1][1]:.1f}"
                said.append(f"epsilon {number(epsilon)}, {MEASURES[key].head}: {ends}")
        level = replace(_CONTROLS[_COMMONER], at=float(np.mean([cell["leakage_baseline"] for cell in cells])))
        panels.append(LinePanel(curves, [level], "" if math.isnan(epsilon) else f"ε = {number(epsilon)}"))
    caption = (
        "Who is advantaged of those trained on, guessed right; means over trials, of all protocols. At share 0 nothing "
        "is asked, at 1 nothing is released."
    )
    return (
        line_plot(
            "along-shares",
            "Guesses along the share",
            caption,
            "; ".join(said),
            [panels],
            Axis("share for queries"),
            [Axis("guessed right, %")],
            inches=(0.5 + 2.5 * max(2, len(panels)), 3.1),
            wide=len(panels) > 2,
            above=True,
            columns=4,
        ),
    )


def _means(cells: Sequence[Line], key: str) -> list[tuple[float, float]]:
    by_share: dict[float, list[float]] = {}
    for cell in cells:
        if cell.get(key) is not None:
            by_share.setdefault(float(cell[QUERIES_SHARE]), []).append(cell[key])
    return [(share, float(np.mean(values))) for share, values in sorted(by_share.items())]
