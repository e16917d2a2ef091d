"""The sentences of the inference game's report: what was played, what was found, and what was assumed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from sim.games.inference.report.cells import Cell, has_intervals, swept_texts
from sim.games.inference.report.paper_comparison import (
    LOADER_ONLY,
    PEOPLE_LEAST,
    TOO_FEW,
    Comparison,
    comparisons,
    loader_only,
)
from sim.report.cells import Trial
from sim.report.estimates import FEWEST, INTERVALS
from sim.report.notation import MISSING, number, plural, span, symbol
from sim.report.reproduction import NOT_REPRODUCED, REPRODUCED, UNDECIDED
from sim.scenarios.sweep import Sweep

FEW = f"Fewer than {FEWEST} data splits give no interval."
LOADER = f"{LOADER_ONLY}: fewer than {PEOPLE_LEAST:,} people; shows that the table can be read, and no more."

ASSUMPTIONS = (
    (
        "The developer holds the protected attribute",
        "Declared: training on one group, and tuning for equal rates, cannot be done without it.",
    ),
    (
        "The adversary's side knowledge",
        "Rows of the same table with their groups, disjoint from the developer's; how models are trained, the defence "
        "included; and black-box access. Not a bit, nor a weight.",
    ),
    (
        "Advantage",
        "|P(guess 1 | b = 1) − P(guess 1 | b = 0)|. An adversary that is always wrong knows the bit too.",
    ),
    (
        "Intervals",
        "Of accuracy and advantage: clustered over data splits, since victims of one split share their rows; the wider "
        f"ones hold for all attacks of a cell at once. Of other means, over the splits: {INTERVALS}",
    ),
    (
        "Bounds",
        "Theorem 1 says that the gaps are at most W times EO, which needs equal base rates. The corrected bounds add "
        "what unequal ones do. Each is asked of every victim, to the sampling error of its own test rows.",
    ),
)


def guesses_note(summary: Sequence[Cell]) -> str:
    """Say what the columns of guesses are."""
    right = "b right: balanced accuracy at guessing the bit"
    coin = "50 is a coin, and as far from it on either side is as much known."
    if not has_intervals(summary):
        return f"{right}. {coin}"
    both = "its 95% interval over data splits, and the one that holds for all attacks of a cell at once at 99.9%"
    return f"{right}, with {both}. {coin}"


def played(sweep: Sweep, trials: Sequence[Trial]) -> str:
    """Say what was played, and who held what."""
    data, adversary = sweep.scenario.data, sweep.scenario.adversary
    splits = len({trial["split_seed"] for trial in trials})
    victims = span({trial["victims"] for trial in trials}) if trials else "no"
    return (
        f"Three separate processes played on {plural(splits, 'split')} of the data. The referee flipped a bit for each "
        f"of {victims} models a split; the developer, which in this game is told the group of its rows "
        f"({data.protected or 'the protected attribute'}), trained each on those of one group and released it as a "
        "black box. The adversary, which holds other rows, "
        f"asked each model about {adversary.probes:,} rows at most and guessed its bit; it never saw a bit, a weight, "
        "or a row that a model was trained on."
        + (
            " Compliance held the groups of test rows, and the developer chose λ by its answers alone."
            if sweep.scenario.developer.lambdas
            else ""
        )
    )


def findings(sweep: Sweep, summary: Sequence[Cell], trials: Sequence[Trial]) -> tuple[str, ...]:
    """Say for each defence what the best attack on it knew, and how many of the paper's figures were met."""
    if any(map(loader_only, summary)):
        return (f"{LOADER.capitalize()} Nothing below is a finding.",)
    return (*_strongest(sweep, summary), *_met(comparisons(sweep, trials)))


def _strongest(sweep: Sweep, summary: Sequence[Cell]) -> Iterator[str]:
    rest = [key for key in sweep.scenario.axes if key != "developer.defence"]
    for defence in dict.fromkeys(cell["defence"] for cell in summary):
        best = max((cell for cell in summary if cell["defence"] == defence), key=lambda cell: cell["advantage"])
        told = [f"{symbol(key)} = {text}" for key, text in zip(rest, swept_texts(rest, best), strict=True)]
        at = "".join(f", {text}" for text in told if not text.endswith(MISSING))
        change = (
            f"The gap was {number(best['gap'])} points, EO {number(best['eo'])}."
            if defence == "none"
            else f"The gap went from {number(best['gap_base'])} to {number(best['gap'])} points, EO from "
            f"{number(best['eo_base'])} to {number(best['eo'])}."
        )
        yield f"Defence “{defence}”{at}: the strongest attack, {best['attack']}, guessed {_right(best)}. {change}"


def _right(cell: Cell) -> str:
    """Say how often b was guessed right, and what that is worth."""
    accuracy = cell["accuracy_b"]
    worth = f", which is worth as much as {number(100 - accuracy)}%" if accuracy < 49.95 else ""
    right = f"{number(accuracy)}% of the bits right{worth}"
    low, high = cell["family_low"], cell["family_high"]
    if low is None:
        return right
    verdict = "which contains 50: not told from chance" if low <= 50 <= high else "which excludes 50: that is no chance"
    return f"{right} ({number(low)} to {number(high)} at 99.9% for all attacks at once, {verdict})"


def _met(rows: Sequence[Comparison]) -> Iterator[str]:
    if any(row.verdict != TOO_FEW for row in rows):
        verdicts = Counter(row.verdict for row in rows)
        order = [verdict for verdict in (REPRODUCED, NOT_REPRODUCED, UNDECIDED) if verdict in verdicts]
        told = "; ".join(f"{verdict}: {verdicts[verdict]}" for verdict in dict.fromkeys([*order, *verdicts]))
        yield f"Of {plural(len(rows), 'figure')} that the paper prints about these cells, {told}."
