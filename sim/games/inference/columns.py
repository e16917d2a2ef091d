"""Columns of the tables of an inference run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from sim.games.game import Line
from sim.games.inference.printed import (
    LOADER_ONLY,
    MARGINS,
    PEOPLE_LEAST,
    comparisons,
    loader_only,
    one_a_split,
)
from sim.report.cells import Swept
from sim.report.columns import Measure, Sheet, interval_of
from sim.report.estimates import FEWEST, PERCENT, SHARE, IntervalEstimate, Range, estimate
from sim.report.notation import MISSING, as_float, count, number, setting
from sim.report.reproduction import beside_ours
from sim.scenarios.sweep import Sweep

FEW = f"Fewer than {FEWEST} data splits give no interval."
LOADER = f"{LOADER_ONLY}: fewer than {PEOPLE_LEAST:,} people; shows that the table can be read, and no more."

_BEFORE = "Before: the model that the defence starts from."
_GAP = "difference of a model's accuracies on the two groups, in points"
_EO = "equalized odds gap, how far the groups' rates of predicted 1 are apart at most, given the label"

accuracy_of = interval_of("accuracy_b")
advantage_of = interval_of("advantage")
family_of = interval_of("accuracy_b", "family")
"""Balanced accuracy at guessing b, with the interval that holds for all attacks at once."""


def has_intervals(summary: Sequence[Line]) -> bool:
    """Return whether any cell has enough splits for intervals."""
    return any(cell["accuracy_b_low"] is not None for cell in summary)


def over_splits(key: str, within: Range = PERCENT) -> Callable[[Line], IntervalEstimate]:
    """Return an estimator, over the splits, of a figure about the victims."""
    return lambda cell: estimate([line[key] for line in cell["lines"]], within)


def _bounds(theorem: str) -> Iterator[Measure[Line]]:
    """Yield the columns that count the splits in which a theorem's bound held, as printed and corrected."""
    for key, head in (("bound_holds", theorem), ("corrected_bound_holds", "corrected")):
        held = partial(lambda key, cell: f"{cell[key]}/{cell['splits']}", key)
        yield Measure(key, head, of=held, group="held, of the splits")


ADVANTAGE: Measure[Line] = Measure(
    "advantage",
    of=advantage_of,
    digits=2,
    short="advantage",
    bare=True,
    main=True,
    about="how much likelier a guess of 1 is where b is 1 than where it is 0; 0 is a coin, 1 is every model",
    scale=(0.0, 1.0),
)
GUESSES: tuple[Measure[Line], ...] = (
    Measure(
        "victims",
        of=lambda cell: count(cell["victims"]),
        about="models that the adversary was asked about, over all splits of the data; a split is one way to deal the "
        "table’s rows to the parties",
    ),
    Measure(
        "accuracy_b",
        "b right",
        "%",
        of=accuracy_of,
        digits=1,
        short="b right, %",
        kept=True,
        about="balanced accuracy at guessing b, which of two groups a model was trained on; 50 is a coin, and as far "
        "from it on either side is as much known",
    ),
    Measure(
        "family",
        "all attacks at once (99.9%)",
        of=lambda cell: family_of(cell).ends(1),
        short="all at once",
        about="an interval so wide that it holds for all attacks of a cell together, at 99.9%",
        when=has_intervals,
    ),
    ADVANTAGE,
    Measure("loader", "", of=lambda cell: LOADER_ONLY if loader_only(cell) else None, words=True),
)
VICTIMS: tuple[Measure[Line], ...] = (
    *(
        Measure(
            key + base,
            "before" if base else "after",
            of=over_splits(key + base),
            digits=1,
            group=group,
            short="" if base and key == "accuracy" else f"{head}\nbefore" if base else head,
            bare=True,
            kept=head == "gap",
            about="" if base else about,
        )
        for key, head, group, about in (
            ("gap", "gap", "gap, points", _GAP),
            ("eo", "EO", "EO, points", _EO),
            ("accuracy", "right\n%", "right, %", "the model's own accuracy, on test rows"),
        )
        for base in ("_base", "")
    ),
    Measure(
        "below_tau",
        "gap at most 5",
        of=lambda cell: f"{cell['below_tau']}/{cell['victims']}",
        short="gap\n≤5",
        about="victims whose gap is at most 5 points, the paper’s τ: near enough to equal",
    ),
)
MEMBERSHIP: tuple[Measure[Line], ...] = (
    Measure("membership_base", "before", of=over_splits("membership_base", SHARE), digits=3, group="membership, AUC"),
    Measure(
        "membership",
        "after",
        of=over_splits("membership", SHARE),
        digits=3,
        group="membership, AUC",
        about="area under the ROC curve, how often a row that was trained on has the smaller loss of two",
    ),
)
BOUNDS: tuple[Measure[Line], ...] = (
    Measure(
        "w",
        "W",
        digits=2,
        about="how much the share of a group differs between the two distributions that a model may be trained on",
    ),
    Measure("eo", "EO", digits=1, about=_EO),
    Measure("ppr_gap", "PPR gap", digits=1, about="difference of the groups' rates of predicted 1"),
    Measure("gap", digits=1, about=_GAP),
    Measure("label_gap", "base rates' gap", digits=1, about="difference of the groups' rates of label 1"),
    *_bounds("Theorem\u00a01"),
    Measure(
        "sampling_error",
        "to a sampling error of at most",
        of=lambda cell: 100 * cell["sampling_error"] if "sampling_error" in cell else None,
        digits=2,
    ),
)
ALGORITHM: tuple[Measure[Line], ...] = (
    *(
        Measure(key, head, of=lambda cell, key=key: count(cell[key]))  # type: ignore[misc]
        for key, head in (("victims", ""), ("needed", "need it"), ("accepted", ""), ("rejected", ""))
    ),
    Measure("size_ratio", "rows to tune on, of those trained on", digits=2),
)
ATTRIBUTES: tuple[Measure[Line], ...] = (
    *(
        Measure(key, head, digits=1, group=group)
        for group, keys in (("gap, points", ("gap_base", "gap")), ("EO, points", ("eo_base", "eo")))
        for head, key in zip(("before", "after"), keys, strict=True)
    ),
    *_bounds("Theorem\u00a03"),
)
CHOSEN: tuple[Measure[Line], ...] = (
    Measure(
        "lambdas",
        "λ: splits that chose it",
        of=lambda cell: ", ".join(f"{number(value)}: {many}" for value, many in cell["lambdas"]),
        words=True,
    ),
    Measure("epsilon_spent", "ε spent", of=lambda cell: number(cell["epsilon_spent"], 6)),
    Measure("queries", "answers", of=lambda cell: count(cell["queries"])),
    Measure("query_error_mean", "mean error of an answer"),
)


def swept_in(sweep: Sweep) -> Swept:
    """Return the keys that distinguish the cells; a training budget that the defence ignores is left blank."""

    def write(cell: Line, key: str) -> str:
        ignored = key == "developer.training_epsilon" and "dp-sgd" not in cell["defence"]
        return MISSING if ignored else setting(cell[key])

    return Swept(sweep.scenario.axes, write=write)


def distinct(sweep: Sweep, lines: Sequence[Line], summary: Sequence[Line]) -> list[Line]:
    """Return one summary line per cell, with its trials' lines; the victims' figures are the same in all of them."""
    kept: dict[tuple[Any, ...], Line] = {}
    for cell in summary:
        kept.setdefault(tuple(setting(cell[key]) for key in sweep.scenario.axes), cell)

    def own(cell: Line) -> list[Line]:
        return one_a_split([line for line in lines if all(line[key] == cell[key] for key in sweep.scenario.axes)])

    return [{**cell, "lines": own(cell)} for cell in kept.values()]


def tables(sweep: Sweep, lines: Sequence[Line], summary: Sequence[Line]) -> list[Sheet[Any]]:
    """Return the tables of guesses, victims, bounds and further figures, and the comparison with the paper."""
    swept, cells = swept_in(sweep), distinct(sweep, lines, summary)
    many = [len(cell["lines"]) for cell in cells] or [0]
    enough = " where there are enough" if min(many) < FEWEST <= max(many) else ""
    loader = LOADER if any(map(loader_only, cells)) else ""

    def table(
        name: str, heading: str, rows: Sequence[Line], columns: Sequence[Measure[Line]], *notes: str, key: str = ""
    ) -> Sheet[Line]:
        keys: Sequence[Measure[Line]] = (Measure(key),) if key else ()
        return Sheet(name, heading, swept, rows, columns, list(filter(None, notes)), keys=keys)

    over = "With 95% intervals, over data splits." if has_intervals(summary) else ""
    guesses = table("guesses", "What the adversary guessed", summary, GUESSES, over, loader.capitalize(), key="attack")
    victims = table(
        "victims",
        "What became of the models",
        cells,
        VICTIMS,
        f"Means over the victims of a split, and the 95% interval of their mean over the splits{enough}. {_BEFORE}",
    )
    told: list[Sheet[Any]] = [
        replace(guesses, caption="" if has_intervals(summary) else FEW),
        replace(victims, caption=f"{_BEFORE} {loader}".rstrip()),
        table(
            "membership",
            "Whether rows were known to be trained on",
            cells,
            MEMBERSHIP,
            "How well a model's loss tells rows that it was trained on from others of the group; 0.5 is a coin.",
        ),
        table(
            "bounds",
            "Whether the bounds held",
            cells,
            BOUNDS,
            "In percentage points, but for W; means over victims and splits. A bound held in a split if it held for "
            "every one of its victims, to the sampling error stated: that of the test rows, which is 0 where both "
            "distributions are pure groups.",
            "Theorem 1: PPR gap and gap are at most W times EO. Corrected: and what the base rates' gap adds.",
        ),
        table(
            "verdicts",
            "What Algorithm 1 says of the models",
            [cell for cell in cells if "needed" in cell],
            ALGORITHM,
            "A model needs fair fine-tuning if its gap is above 5 points, and is accepted if it no longer is then.",
        ),
        table(
            "attributes",
            "Several attributes at once",
            [{**cell, **own} for cell in cells for own in cell.get("attributes", ())],
            ATTRIBUTES,
            "Each attribute by itself, between its own pure groups (Theorem 3).",
            key="attribute",
        ),
        table(
            "chosen", "How λ was chosen by compliance's answers", [cell for cell in cells if "lambdas" in cell], CHOSEN
        ),
        beside_ours(
            comparisons(sweep, lines), lambda cell: swept.name(cell) or sweep.scenario.developer.defence, MARGINS
        ),
    ]
    return [one for one in told if one.rows]


def swept_axis(axes: Sequence[str], summary: Sequence[Line]) -> str | None:
    """Return a swept number that takes more than two values for every combination of the other axes, or None."""
    for axis in axes:
        places: dict[tuple[str, ...], set[float]] = {}
        for cell in summary:
            rest = tuple(setting(cell[key]) for key in axes if key != axis)
            places.setdefault(rest, set()).add(as_float(cell[axis]))
        if all(len(values) > 2 and not any(map(math.isnan, values)) for values in places.values()):
            return axis
    return None


def defence_of(sweep: Sweep, summary: Sequence[Line]) -> list[str]:
    """Return each cell's name without the number along which figures are drawn: mostly its defence."""
    swept, axis = swept_in(sweep), swept_axis(sweep.scenario.axes, summary)
    return [swept.name(cell, [axis] if axis else ()) or str(cell["defence"]) for cell in summary]
