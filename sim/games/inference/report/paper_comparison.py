"""What a paper printed about cells of the inference game, beside what was measured, and whether the two agree.

Printed figures are regions, and are judged by the rule for every figure (`sim.report.reproduction`): a mean with a
margin, a count of runs by its own 95% interval; where the numbers are lost and only a sign is told, all numbers of that
sign. What was measured on other data than the paper's tests nothing. The papers' models are trained on one group, so
that ours of that group alone are put beside them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sim.games.inference.scenario import InferenceFigure, InferenceScenario
from sim.report.cells import Trial, paper_figure
from sim.report.estimates import FEWEST, PERCENT, POINTS, Range, estimate, share_interval
from sim.report.notation import number
from sim.report.reproduction import judged, region
from sim.scenarios.sweep import Sweep

PEOPLE_LEAST = 1000
"""A table of fewer people shows that it can be read, and no more: German Credit, the papers' smallest, has so many."""

TOO_FEW = "too few splits"
LOADER_ONLY = "loader only"

ACCURACY_MARGIN, GAP_MARGIN, RATIO_MARGIN = 1.0, 2.0, 0.1
"""Within how much of a printed accuracy, gap or ratio of gaps ours counts as the same: points, points, as a share."""

RULE = (
    f"A printed mean stands for a region: {ACCURACY_MARGIN:g} point of accuracy or {GAP_MARGIN:g} points of a gap "
    f"either way, {RATIO_MARGIN:g} of a ratio, for which rows were tested on; a count of runs for its own 95% "
    "interval; where only a sign is told, for all numbers of that sign. Reproduced: the data are the paper's, and our "
    "95% interval over splits lies wholly inside the region. Not reproduced: wholly outside. Undecided: neither. "
    "Theorem 1's bound is asked here as the paper asks it: is the mean gap at most W times the mean EO? Fewer than "
    f"{FEWEST} splits decide nothing. Where the paper's models are all trained on one group, so are ours here."
)

_DATA = {
    "acs-income": "ACS Income",
    "adult": "Adult",
    "bias-in-bios": "Bias in Bios",
    "compas": "COMPAS",
    "german": "German Credit",
    "lsac": "LSAC",
    "utkface": "UTKFace",
}
_MEANS = {
    "gap_base": "gap before",
    "gap": "gap",
    "eo_base": "EO before",
    "eo": "EO",
    "label_gap": "base rates' gap",
    "accuracy_base": "right before, %",
    "accuracy": "right, %",
}
_CHANGES = {"gap_change": ("change of the gap", "gap"), "eo_change": ("change of EO", "eo")}


@dataclass(frozen=True)
class Comparison:
    """One printed figure beside ours.

    Attributes
    ----------
    swept : the cell's swept values, by dotted key.
    what : what is compared.
    printed, measured : as they are written.
    verdict : whether they agree, or why that is not asked.
    source : where the printed one stands.
    """

    swept: Mapping[str, Any]
    what: str
    printed: str
    measured: str
    verdict: str
    source: str


def untested(figure: InferenceFigure, scenario: InferenceScenario) -> str | None:
    """Name what a figure was measured on, where that is not what is played; None where it is.

    A user's file in a known format counts as that data set, whatever it is called.
    """
    source = scenario.data.source.partition(":")[0]
    if figure.data is None or figure.data.casefold() == f"{source}, {scenario.data.protected}".casefold():
        return None
    name, _, protected = figure.data.partition(", ")
    return f"{_DATA.get(name, name)}, {protected}"


def loader_only(line: Mapping[str, Any]) -> bool:
    """Say whether a line, or a cell of a summary, is of too few people to say anything about a paper's data set."""
    return bool(0 < line.get("people", 0) < PEOPLE_LEAST)


def one_a_split(trials: Sequence[Trial]) -> list[Trial]:
    """Keep one line a split: what is measured of the victims stands in the lines of all attacks alike."""
    return list({trial["split_seed"]: trial for trial in reversed(trials)}.values())[::-1]


def comparisons(sweep: Sweep, trials: Sequence[Trial]) -> tuple[Comparison, ...]:
    """Put the paper's figures beside what was measured, cell by cell."""
    rows = []
    for cell in sweep.cells:
        figure = paper_figure(cell.scenario)
        lines = one_a_split([t for t in trials if all(t[key] == value for key, value in cell.swept.items())])
        if figure is None or not lines:
            continue
        other = untested(figure, cell.scenario)
        for what, printed, measured, verdict in _compared(figure, lines):
            if any(map(loader_only, lines)):
                verdict = LOADER_ONLY
            elif other is not None:
                verdict = f"not tested here ({other})"
            elif len(lines) < FEWEST:
                verdict = TOO_FEW
            rows.append(Comparison(cell.swept, what, printed, measured, verdict, figure.source))
    return tuple(rows)


def _compared(figure: InferenceFigure, lines: Sequence[Trial]) -> Iterator[tuple[str, str, str, str]]:
    """Compare quantity by quantity: what, printed, measured, and whether they agree."""
    own = [_of_the_papers_bit(line, figure.bit) for line in lines]
    for key, what in _MEANS.items():
        printed = getattr(figure, key)
        if printed is not None:
            margin = ACCURACY_MARGIN if key.startswith("accuracy") else GAP_MARGIN
            ours = estimate([line[key] for line in own], PERCENT)
            yield what, f"{printed:g}", str(ours), judged(ours, region(printed, None, margin))
    if figure.gap_ratio is not None:
        ours = estimate([line["gap"] / line["gap_base"] for line in own if line["gap_base"]] or [1.0], (0, math.inf))
        verdict = judged(ours, region(figure.gap_ratio, None, RATIO_MARGIN))
        yield "gap, as a share of before", f"{figure.gap_ratio:g}", ours.text(2), verdict
    for key, (what, of) in _CHANGES.items():
        direction = getattr(figure, key)
        if direction is not None:
            ours = estimate([line[of] - line[f"{of}_base"] for line in own], POINTS)
            yield what, direction, str(ours), judged(ours, _BELOW if direction == "falls" else _ABOVE)
    if figure.below_tau is not None and figure.runs is not None:
        below, victims = (sum(line[key] for line in own) for key in ("below_tau", "victims"))
        ours = estimate([100 * line["below_tau"] / line["victims"] for line in own], PERCENT)
        low, high = (100 * share for share in share_interval(figure.below_tau, figure.runs))
        # A hair wider: so many of so many is ours too, but for the last bits.
        verdict = judged(ours, region((low + high) / 2, None, (high - low) / 2 + 1e-9))
        yield "gap at most 5 points", f"{figure.below_tau}/{figure.runs}", f"{below}/{victims}", verdict
    if figure.bound_holds is not None:
        # As the paper asks it, of the mean gap of the accuracies; the table of bounds asks it of every victim.
        ours = estimate([line["gap"] - line["w"] * line["eo"] for line in own])
        wanted = "at most 0" if figure.bound_holds else "above 0"
        yield "gap less W·EO", wanted, str(ours), judged(ours, _BELOW if figure.bound_holds else _ABOVE)


_BELOW: Range = (-math.inf, 0.0)
_ABOVE: Range = (0.0, math.inf)


def _of_the_papers_bit(line: Trial, bit: int | None) -> Trial:
    """Put the figures of the victims of one bit in place of those of all, where a line has them."""
    if bit is None or f"gap_b{bit}" not in line:
        return line
    victims = line["victims_b1"] if bit else line["victims"] - line["victims_b1"]
    return {**line, "victims": victims, **{key: line[f"{key}_b{bit}"] for key in _BY_BIT}}


_BY_BIT = ("gap_base", "gap", "eo_base", "eo", "below_tau")


def printed_text(
    figure: InferenceFigure | None, key: str, scenario: InferenceScenario, cell: Mapping[str, Any]
) -> str | None:
    """Write a printed figure for a terminal's column: † where ours is loader only, * where other data were played."""
    value = None if figure is None else getattr(figure, key)
    if figure is None or value is None:
        return None
    text = f"{value}/{figure.runs}" if key == "below_tau" else number(value)
    return text + ("†" if loader_only(cell) else "*" if untested(figure, scenario) is not None else "")
