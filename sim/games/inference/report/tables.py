"""The tables of the inference game's page."""

from __future__ import annotations

from collections.abc import Sequence

from sim.games.inference.report.cells import (
    Cell,
    accuracy_of,
    advantage_of,
    distinct,
    family_of,
    has_intervals,
    lines_of,
    name_of,
    swept_number,
    swept_texts,
)
from sim.games.inference.report.paper_comparison import LOADER_ONLY, RULE, Comparison, comparisons, loader_only
from sim.games.inference.report.wording import LOADER, guesses_note
from sim.report.cells import Trial, trials_id
from sim.report.estimates import FEWEST, PERCENT, SHARE, estimate
from sim.report.notation import MISSING, count, number, symbol
from sim.report.page import Section
from sim.report.tables import Column, PageTable
from sim.scenarios.sweep import Sweep

_ABOUT = {
    "gap, points": "Difference of a model's accuracies on the two groups.",
    "EO, points": "Equalized odds gap: how far the groups' rates of predicted 1 are apart at most, given the label.",
    "right, %": "The model's own accuracy, on test rows.",
}
"""What the victims' columns mean."""

_AREA = "Area under the ROC curve: how often a row that was trained on has the smaller loss of two."


def sections(sweep: Sweep, summary: Sequence[Cell], trials: Sequence[Trial]) -> tuple[Section, ...]:
    """Lay out the page's tables: guesses, victims, bounds, the paper's figures, and what else was measured."""
    if not summary:
        return ()
    cells = distinct(sweep, summary)
    lines = [lines_of(sweep, cell, trials) for cell in cells]
    made = [
        Section("guesses", "What the adversary guessed", table=_guess_table(sweep, summary)),
        Section("victims", "What became of the models", table=_victim_table(sweep, cells, lines)),
        Section("membership", "Whether rows were known to be trained on", table=_membership_table(sweep, cells, lines)),
        Section("bounds", "Whether the bounds held", table=_bound_table(sweep, cells)),
    ]
    if any("needed" in cell for cell in cells):
        made.append(Section("verdicts", "What Algorithm 1 says of the models", table=_verdict_table(sweep, cells)))
    if any("attributes" in cell for cell in cells):
        made.append(Section("attributes", "Several attributes at once", table=_attribute_table(sweep, cells)))
    if any("lambdas" in cell for cell in cells):
        made.append(Section("chosen", "How λ was chosen by compliance's answers", table=_chosen_table(sweep, cells)))
    printed = comparisons(sweep, trials)
    if printed:
        made.append(Section("paper", "The paper's figures, beside ours", table=_paper_table(sweep, cells, printed)))
    return tuple(made)


def _axes(sweep: Sweep, cells: Sequence[Cell]) -> list[Column]:
    keys = list(sweep.scenario.axes)
    rows = [swept_texts(keys, cell) for cell in cells]
    return [
        Column(
            symbol(key), [row[i] for row in rows], numeric=not any(swept_number(cell[key]) is None for cell in cells)
        )
        for i, key in enumerate(keys)
    ]


def _guess_table(sweep: Sweep, summary: Sequence[Cell]) -> PageTable:
    level = " (95%)" if has_intervals(summary) else ""
    columns = [
        *_axes(sweep, summary),
        Column("attack", [cell["attack"] for cell in summary], numeric=False),
        Column(
            "victims",
            [count(cell["victims"]) for cell in summary],
            about="Models that the adversary was asked about, over all splits of the data. A split is one way to deal "
            "the table’s rows to the parties.",
        ),
        Column(
            f"b right, %{level}",
            [str(accuracy_of(cell)) for cell in summary],
            about="b says which of two groups a model was trained on. The mean of the shares guessed right of models "
            "with b = 0 and of models with b = 1.",
        ),
    ]
    if level:
        columns.append(
            Column(
                "all attacks at once (99.9%)",
                [family_of(cell).ends(1) for cell in summary],
                about="An interval so wide that it holds for all attacks of the cell together. A cell is one "
                "combination of settings.",
            )
        )
    columns.append(
        Column(
            f"advantage{level}",
            [advantage_of(cell).text(2) for cell in summary],
            about="How much likelier a guess of 1 is where b is 1 than where it is 0: 0 is a coin, 1 is every model.",
            stays=True,
        )
    )
    notes = [guesses_note(summary)]
    if any(map(loader_only, summary)):
        columns.append(_loader_column(summary))
        notes.append(LOADER.capitalize())
    return _table(sweep, summary, columns, notes, keys=len(sweep.scenario.axes) + 1)


def _loader_column(cells: Sequence[Cell]) -> Column:
    return Column("", [LOADER_ONLY if loader_only(cell) else "" for cell in cells], numeric=False)


def _victim_table(sweep: Sweep, cells: Sequence[Cell], lines: Sequence[Sequence[Trial]]) -> PageTable:
    columns = _axes(sweep, cells)
    for group, before, after in (
        ("gap, points", "gap_base", "gap"),
        ("EO, points", "eo_base", "eo"),
        ("right, %", "accuracy_base", "accuracy"),
    ):
        columns += [
            Column(
                head, [_text(own, key) for own in lines], group=group, about=_ABOUT[group] if head == "after" else ""
            )
            for head, key in (("before", before), ("after", after))
        ]
    within = [f"{cell['below_tau']}/{cell['victims']}" for cell in cells]
    about = "Victims whose gap is at most 5 points, the paper’s τ: near enough to equal."
    columns.append(Column("gap at most 5", within, about=about))
    return _table(
        sweep,
        cells,
        columns,
        (
            "Means over the victims of a split, and the 95% interval of their mean over the splits"
            + (" where there are enough." if min(map(len, lines)) < FEWEST <= max(map(len, lines)) else ".")
            + " Before: the model that the defence starts from.",
        ),
    )


def _membership_table(sweep: Sweep, cells: Sequence[Cell], lines: Sequence[Sequence[Trial]]) -> PageTable:
    columns = [
        *_axes(sweep, cells),
        *(
            Column(
                head,
                [_area(own, key) for own in lines],
                group="membership, AUC",
                about=_AREA if head == "after" else "",
            )
            for head, key in (("before", "membership_base"), ("after", "membership"))
        ),
    ]
    note = "How well a model's loss tells rows that it was trained on from others of the group; 0.5 is a coin."
    return _table(sweep, cells, columns, (note,))


def _table(
    sweep: Sweep, cells: Sequence[Cell], columns: Sequence[Column], notes: Sequence[str], keys: int = 0
) -> PageTable:
    """Lay out cells, a row each, that leads to its trials."""
    axes = sweep.scenario.axes
    links = [trials_id({key: cell[key] for key in axes}) for cell in cells]
    return PageTable(columns, notes, links, keys or max(1, len(axes)))


def _text(lines: Sequence[Trial], key: str) -> str:
    return str(estimate([line[key] for line in lines], PERCENT))


def _area(lines: Sequence[Trial], key: str) -> str:
    return estimate([line[key] for line in lines], SHARE).text(3)


def _bound_table(sweep: Sweep, cells: Sequence[Cell]) -> PageTable:
    columns = _axes(sweep, cells)
    for head, key, digits, about in (
        (
            "W",
            "w",
            2,
            "How much the share of a group differs between the two distributions that a model may be trained on.",
        ),
        ("EO", "eo", 1, _ABOUT["EO, points"]),
        ("PPR gap", "ppr_gap", 1, "Difference of the groups' rates of predicted 1."),
        ("gap", "gap", 1, _ABOUT["gap, points"]),
        ("base rates' gap", "label_gap", 1, "Difference of the groups' rates of label 1."),
    ):
        columns.append(Column(head, [f"{cell[key]:.{digits}f}" for cell in cells], about=about))
    for head, key in (("Theorem\u00a01", "bound_holds"), ("corrected", "corrected_bound_holds")):
        columns.append(Column(head, [f"{cell[key]}/{cell['splits']}" for cell in cells], group="held, of the splits"))
    errors = [f"{100 * cell['sampling_error']:.2f}" if "sampling_error" in cell else MISSING for cell in cells]
    columns.append(Column("to a sampling error of at most", errors))
    return _table(
        sweep,
        cells,
        columns,
        (
            "In percentage points, but for W; means over victims and splits. A bound held in a split if it held for "
            "every one of its victims, to the sampling error stated: that of the test rows, which is 0 where both "
            "distributions are pure groups.",
            "Theorem 1: PPR gap and gap are at most W times EO. Corrected: and what the base rates' gap adds.",
        ),
    )


def _verdict_table(sweep: Sweep, cells: Sequence[Cell]) -> PageTable:
    tuned = [cell for cell in cells if "needed" in cell]
    columns = [
        *_axes(sweep, tuned),
        Column("victims", [count(cell["victims"]) for cell in tuned]),
        Column("need it", [count(cell["needed"]) for cell in tuned]),
        Column("accepted", [count(cell["accepted"]) for cell in tuned]),
        Column("rejected", [count(cell["rejected"]) for cell in tuned]),
        Column("rows to tune on, of those trained on", [f"{cell['size_ratio']:.2f}" for cell in tuned]),
    ]
    notes = (
        "A model needs fair fine-tuning if its gap is above 5 points, and is accepted if it no longer is afterwards.",
    )
    return PageTable(columns, notes)


def _attribute_table(sweep: Sweep, cells: Sequence[Cell]) -> PageTable:
    rows = [(cell, own) for cell in cells for own in cell.get("attributes", ())]
    columns = [
        *_axes(sweep, [cell for cell, _ in rows]),
        Column("attribute", [own["attribute"] for _, own in rows], numeric=False),
    ]
    for group, keys in (("gap, points", ("gap_base", "gap")), ("EO, points", ("eo_base", "eo"))):
        columns += [
            Column(head, [f"{own[key]:.1f}" for _, own in rows], group=group)
            for head, key in zip(("before", "after"), keys, strict=True)
        ]
    columns += [
        Column(head, [f"{own[key]}/{cell['splits']}" for cell, own in rows], group="held, of the splits")
        for head, key in (("Theorem\u00a03", "bound_holds"), ("corrected", "corrected_bound_holds"))
    ]
    return PageTable(columns, ("Each attribute by itself, between its own pure groups (Theorem 3).",))


def _chosen_table(sweep: Sweep, cells: Sequence[Cell]) -> PageTable:
    rows = [cell for cell in cells if "lambdas" in cell]
    chosen = [", ".join(f"{number(value)}: {many}" for value, many in cell["lambdas"]) for cell in rows]
    columns = [
        *_axes(sweep, rows),
        Column("λ: splits that chose it", chosen, numeric=False),
        Column("ε spent", [number(cell["epsilon_spent"], 6) for cell in rows]),
        Column("answers", [count(cell["queries"]) for cell in rows]),
        Column("mean error of an answer", [number(cell["query_error_mean"]) for cell in rows]),
    ]
    return PageTable(columns)


def _paper_table(sweep: Sweep, cells: Sequence[Cell], rows: Sequence[Comparison]) -> PageTable:
    keys = list(sweep.scenario.axes)
    own = [next(c for c in cells if all(c[key] == value for key, value in row.swept.items())) for row in rows]
    columns = [Column("cell", [name_of(keys, cell) for cell in own], numeric=False)] + [
        Column(head, [getattr(row, part) for row in rows], numeric=part in ("printed", "measured"))
        for head, part in (
            ("figure", "what"),
            ("paper", "printed"),
            ("ours", "measured"),
            ("verdict", "verdict"),
            ("where it is printed", "source"),
        )
    ]
    return PageTable(columns, (RULE,))
