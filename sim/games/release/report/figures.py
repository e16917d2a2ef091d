"""[LD]'s figures of a run: fairness, utility and guesses along epsilon, a panel for each split, a line a protocol.

[LD]: Arcolezi, Makhlouf, Palamidessi, DBSec 2023: figures 2 to 7, and 8 to 13 of attributes that are drawn at random.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from matplotlib.lines import Line2D

from fairwall.laws.local import CLEAN, LOCAL_LAWS
from sim.games.game import Line
from sim.games.release.questions import K_BASED, UNIFORM
from sim.games.release.report.columns import FACTORS, MEASURES
from sim.games.release.report.verdicts import protocol_title
from sim.games.release.scenario import CONSTANT, CONTROLS, DROPPED, QUERIES_SHARE
from sim.games.release.seeds import Figures
from sim.report.drawing import BLACK, COLOURS, DASHES, GREY, MARKERS, Figure, Look
from sim.report.estimates import FEWEST
from sim.report.line_plot import Axis, Curve, Level, Panel, line_plot
from sim.report.notation import number

_ROWS = {
    "fairness": ("Fairness", ("di", "sp", "eo", "oad")),
    "utility": ("Utility", ("acc", "f1", "auc_hard", "recall", "auc")),
    "guesses": ("Profiles and guesses", ("consistent", "leakage_release", "leakage", "leakage_mixture")),
}
"""Each figure's rows, in the paper's order."""

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
_COMMONER = "commoner"
_CONTROLS = {
    CLEAN: Level(0.0, "clean (NonDP)", BLACK, "-", 1.1),
    DROPPED: Level(0.0, "columns dropped", BLACK, DASHES[1], 1.1),
    # It is often far away, and would press the lines together.
    CONSTANT: Level(0.0, "constant model", GREY, ":", 1.1, beyond=True),
    _COMMONER: Level(0.0, "commoner group for all", GREY, "-", 1.1),
}
_FIRST = (UNIFORM, K_BASED)
"""The paper's splits, from left to right."""

_SPREAD = 0.36
"""Over how much of the way to the next epsilon the protocols stand beside one another."""

_Points = Mapping[float, tuple[float, float]]
"""Along epsilon: a mean, and its standard error, 0 where there are too few seeds for one."""

_Lines = Mapping[tuple[str, str], _Points]
"""By split and protocol. Controls have no split, and an infinite epsilon."""


def look_of(protocol: str) -> Look:
    """Give a protocol's look: the same in every figure, whichever others are played."""
    again, place = divmod(list(LOCAL_LAWS).index(protocol), len(COLOURS))
    return Look(COLOURS[place], MARKERS[(place + 3 * again) % len(MARKERS)], DASHES[2 * again], size=3.5)


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
                # Where nothing is released, or all as it is, there is nothing to guess.
                ours = {line: points for line, points in ours.items() if line[0]}
                if key.startswith("leakage"):
                    ours |= _commoner(figures, data)
            if any(split for split, _ in (theirs if beside is not None else ours)):
                rows[key] = (ours, theirs)
        if rows:
            where = f"{data}, {within}" if within else data
            drawn.append(_figure(name, f"{title} along ε: {where}", rows, splits, epsilons))
    return tuple(drawn)


def _lines(figures: Figures, data: str, key: str) -> dict[tuple[str, str], dict[float, tuple[float, float]]]:
    lines: dict[tuple[str, str], dict[float, tuple[float, float]]] = {}
    for cell, seeds in figures.items():
        values = FACTORS[key] * np.array([told[key] for told in seeds.values() if key in told])
        if cell.data == data and len(values):
            error = values.std(ddof=1) / math.sqrt(len(values)) if len(values) >= FEWEST else 0.0
            lines.setdefault((cell.split, cell.protocol), {})[cell.epsilon] = float(values.mean()), float(error)
    return lines


def _commoner(figures: Figures, data: str) -> dict[tuple[str, str], dict[float, tuple[float, float]]]:
    """Give what anybody guesses."""
    levels = [
        point
        for (split, _), points in _lines(figures, data, "leakage_baseline").items()
        for point in points.values()
        if split
    ]
    return {("", _COMMONER): {math.inf: levels[0]}} if levels else {}


def _figure(
    name: str, title: str, rows: Mapping[str, tuple[_Lines, _Lines]], splits: Sequence[str], epsilons: Sequence[float]
) -> Figure:
    protocols = [each for each in LOCAL_LAWS if any(each == line[1] for ours, _ in rows.values() for line in ours)]
    beside = any(theirs for _, theirs in rows.values())

    def curves(ours: _Lines, theirs: _Lines, split: str) -> list[Curve]:
        found = []
        for place, protocol in enumerate(protocols):
            aside, look = _SPREAD * ((place + 0.5) / len(protocols) - 0.5), look_of(protocol)
            for side, own in ((theirs, replace(look, dash=DASHES[5], hollow=True)), (ours, look)):
                points = [(e, *point) for e, point in sorted(side.get((split, protocol), {}).items()) if e in epsilons]
                if points:
                    style = {"mew": 0.7, "lw": 0.9} if own.hollow else {"lw": 1.2}
                    at = [(epsilons.index(epsilon) + aside, mean) for epsilon, mean, _ in points]
                    label = "" if own.hollow else protocol_title(protocol)
                    found.append(Curve(at, own, label, bars=[error for *_, error in points], style=style))
        return found

    panels = [
        [
            Panel(
                curves(ours, theirs, split),
                [
                    replace(level, at=mean)
                    for control, level in _CONTROLS.items()
                    for mean, _ in ours.get(("", control), {}).values()
                ],
                split if number_of == 0 else "",
            )
            for split in splits
        ]
        for number_of, (ours, theirs) in enumerate(rows.values())
    ]
    said = [f"Means over seeds; bars are standard errors, from {FEWEST} seeds on."]
    said += ["Dashed and hollow: published."] if beside else []
    hollow = Line2D([], [], color=GREY, marker="o", mfc="none", ms=3.5, ls=DASHES[5], lw=0.9, label="published")
    return line_plot(
        "".join(letter if letter.isalnum() else "-" for letter in f"{name}-{title.partition(': ')[2]}").lower(),
        title,
        " ".join([*said, "A level beyond a panel is left out.", _NOTES[name]]),
        _alt(title, rows, epsilons),
        panels,
        Axis("ε", ticks=dict(enumerate(map(number, epsilons))), low=-0.4, high=len(epsilons) - 0.6),
        [Axis(_LABELS.get(key, MEASURES[key].head)) for key in rows],
        inches=(0.5 + 2.55 * max(2, len(splits)), 1.1 + 1.55 * len(rows)),
        wide=len(splits) > 2,
        above=True,
        columns=5 if len(splits) < 3 else 6,
        more=[hollow] if beside else [],
    )


def _alt(title: str, rows: Mapping[str, tuple[_Lines, _Lines]], epsilons: Sequence[float]) -> str:
    """Say for each row between which values its lines run."""
    said = []
    for key, (ours, _) in rows.items():
        digits = MEASURES[key].digits
        means = [mean for (split, _), points in ours.items() if split for mean, _ in points.values()]
        clean = ours.get(("", CLEAN), {}).get(math.inf)
        level = "" if clean is None else f", clean {clean[0]:.{digits}f}"
        said.append(f"{MEASURES[key].head} from {min(means):.{digits}f} to {max(means):.{digits}f}{level}")
    return f"Chart. {title}, from {epsilons[0]:g} to {epsilons[-1]:g}. {'; '.join(said)}."


_GUESSES = {"leakage_release": "release alone", "leakage": "and features, labels", "leakage_mixture": "and queries"}


def along_shares(summary: Sequence[Line]) -> tuple[Figure, ...]:
    """Draw who is guessed right along the share of epsilon that buys queries: a panel for each epsilon.

    Parameters
    ----------
    summary : sequence of mapping
        A run's cells, in which `QUERIES_SHARE` is swept. Controls, in which nothing is guessed, are left out.
    """
    by_epsilon: dict[float, list[Line]] = {}
    for cell in summary:
        epsilon = float(cell.get("release.epsilon", "nan"))
        if epsilon != math.inf and any(cell.get(key) is not None for key in _GUESSES):
            by_epsilon.setdefault(epsilon, []).append(cell)
    if not by_epsilon:
        return ()
    panels, said = [], []
    for epsilon, cells in by_epsilon.items():
        found = {key: _means(cells, key) for key in _GUESSES}
        looks = (Look(*style) for style in zip(COLOURS, MARKERS, DASHES, strict=True))
        curves = [Curve(points, next(looks), _GUESSES[key]) for key, points in found.items()]
        level = replace(_CONTROLS[_COMMONER], at=float(np.mean([cell["leakage_baseline"] for cell in cells])))
        panels.append(Panel(curves, [level], "" if math.isnan(epsilon) else f"ε = {number(epsilon)}"))
        said += [
            f"epsilon {number(epsilon)}, {MEASURES[key].head}: {points[0][1]:.1f} to {points[-1][1]:.1f}"
            for key, points in found.items()
            if points
        ]
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
    """Give a guess's mean by share."""
    by_share: dict[float, list[float]] = {}
    for cell in cells:
        if cell.get(key) is not None:
            by_share.setdefault(float(cell[QUERIES_SHARE]), []).append(cell[key])
    return [(share, float(np.mean(values))) for share, values in sorted(by_share.items())]
