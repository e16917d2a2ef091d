"""What a run of the inference game comes to: tables for the terminal, and what the page shows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from compliance.mechanisms import MECHANISMS
from fairwall.laws.metric import METRICS
from sim.games.inference.report.printed import (
    LOADER_ONLY,
    NOT_REPRODUCED,
    PEOPLE_LEAST,
    REPRODUCED,
    RULE,
    Beside,
    beside,
    loader_only,
    one_a_split,
    printed_beside,
)
from sim.games.inference.scenario import InferenceFigure, InferenceScenario
from sim.report.cells import Estimate, Trial, estimate, paper_figure, scenario_of
from sim.report.notation import MISSING, as_float, count, number, plural, setting, span, symbol
from sim.report.tables import Column, PageTable, Section
from sim.scenarios.sweep import Sweep

if TYPE_CHECKING:
    from sim.report.drawing import Figure

Cell = Mapping[str, Any]
"""Of a summary: one attack on one combination of swept values."""

_PRIVATE = "developer.training_epsilon"
_GUESSES = (
    "b right: balanced accuracy at guessing the bit, with its 95% interval over data splits, and the one that holds "
    "for all attacks of a cell at once at 99.9%. 50 is a coin, and as far from it on either side is as much known."
)
_VICTIMS = (
    "gap: difference of the accuracies on the two groups, EO: equalized odds gap, points; before and after the "
    "defence. ≤5: victims whose gap is at most 5 points."
)
_LOADER = f"{LOADER_ONLY}: fewer than {PEOPLE_LEAST:,} people; shows that the table can be read, and no more."


def terminal_table(sweep: Sweep, summary: Sequence[Cell]) -> Group:
    """Lay out a run's summary for a terminal of 80 columns: the guesses, and below them the victims."""
    keys = list(sweep.scenario.axes)
    guesses, victims = _table(sweep.scenario.scenario.name), _table(None)
    for table in (guesses, victims):
        for key in keys:
            table.add_column(Text(symbol(key)), overflow="fold")
    for head in ("attack", "b right, % (95%)", "all at once", "advantage"):
        guesses.add_column(Text(head), justify="left" if head == "attack" else "right", no_wrap=True)
    for cell in summary:
        family = f"{cell['family_low']:.0f}–{cell['family_high']:.0f}"
        texts = (cell["attack"], _interval(cell, 0), family, f"{cell['advantage']:.2f}")
        guesses.add_row(*(Text(text) for text in (*_swept(keys, cell), *texts)))
    cells = _cells(sweep, summary)
    columns = {
        "gap\nbefore": [f"{cell['gap_base']:.1f}" for cell in cells],
        "gap": [f"{cell['gap']:.1f}" for cell in cells],
        "EO\nbefore": [f"{cell['eo_base']:.1f}" for cell in cells],
        "EO": [f"{cell['eo']:.1f}" for cell in cells],
        "right\n%": [f"{cell['accuracy']:.1f}" for cell in cells],
        "gap\n≤5": [f"{cell['below_tau']}/{cell['victims']}" for cell in cells],
    }
    scenarios = [scenario_of(sweep, {key: cell[key] for key in keys}) for cell in cells]
    for head, name in (("gap", "gap"), ("EO", "eo"), ("≤5", "below_tau")):
        told = [
            printed_beside(paper_figure(scenario), name, scenario, cell)
            for scenario, cell in zip(scenarios, cells, strict=True)
        ]
        if any(told):
            columns[f"paper\n{head}"] = [text or MISSING for text in told]
    for head in columns:
        victims.add_column(Text(head), justify="right", no_wrap=True)
    for row, cell in enumerate(cells):
        victims.add_row(*(Text(text) for text in (*_swept(keys, cell), *(texts[row] for texts in columns.values()))))
    said = [_VICTIMS]
    printed = [text for head, texts in columns.items() if head.startswith("paper") for text in texts]
    if printed:
        said.append("paper: as printed there.")
    if any(text.endswith("*") for text in printed):
        said.append("*: on other data, not tested here.")
    if any(map(loader_only, cells)):
        said.append(f"{'†, ' if any(text.endswith('†') for text in printed) else ''}{_LOADER}")
    guesses.caption, victims.caption = Text(_GUESSES, style="dim"), Text(" ".join(said), style="dim")
    if not summary:
        return Group(Text("No trial finished.", style="dim"))
    return Group(guesses, Text(), victims)


def _table(title: str | None) -> Table:
    return Table(
        title=None if title is None else Text(title),
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        collapse_padding=True,
        caption_justify="left",
    )


def _swept(keys: Sequence[str], cell: Cell) -> list[str]:
    """Write a cell's swept values; a budget that no training of it is about is none."""
    return [MISSING if key == _PRIVATE and "dp-sgd" not in cell["defence"] else setting(cell[key]) for key in keys]


def _name(keys: Sequence[str], cell: Cell) -> str:
    """Name a cell in a few words."""
    told = dict(zip(keys, _swept(keys, cell), strict=True))
    words = [
        text if key == "developer.defence" else f"{symbol(key)} {text}" for key, text in told.items() if text != MISSING
    ]
    return ", ".join(words) or str(cell["defence"])


def _cells(sweep: Sweep, summary: Sequence[Cell]) -> list[Cell]:
    """Keep one line of the summary for each combination of swept values: what is said of the victims is in all."""
    kept: dict[tuple[str, ...], Cell] = {}
    for cell in summary:
        kept.setdefault(tuple(setting(cell[key]) for key in sweep.scenario.axes), cell)
    return list(kept.values())


def _lines(sweep: Sweep, cell: Cell, trials: Sequence[Trial]) -> list[Trial]:
    """Find a cell's lines, one a split."""
    return one_a_split([trial for trial in trials if all(trial[key] == cell[key] for key in sweep.scenario.axes)])


def _interval(cell: Cell, digits: int) -> str:
    return f"{cell['accuracy_b']:.1f} ({cell['accuracy_b_low']:.{digits}f}–{cell['accuracy_b_high']:.{digits}f})"


def _advantage(cell: Cell) -> str:
    return f"{cell['advantage']:.2f} ({cell['advantage_low']:.2f}–{cell['advantage_high']:.2f})"


def sections(sweep: Sweep, summary: Sequence[Cell], trials: Sequence[Trial]) -> tuple[Section, ...]:
    """Lay out the page's tables: guesses, victims, bounds, the paper's figures, and what else was measured."""
    if not summary:
        return ()
    cells = _cells(sweep, summary)
    lines = [_lines(sweep, cell, trials) for cell in cells]
    made = [
        Section("guesses", "What the adversary guessed", _guess_table(sweep, summary)),
        Section("victims", "What became of the models", _victim_table(sweep, cells, lines)),
        Section("bounds", "Whether the bounds held", _bound_table(sweep, cells)),
    ]
    if any("needed" in cell for cell in cells):
        made.append(Section("verdicts", "What Algorithm 1 says of the models", _verdict_table(sweep, cells)))
    if any("attributes" in cell for cell in cells):
        made.append(Section("attributes", "Several attributes at once", _attribute_table(sweep, cells)))
    if any("lambdas" in cell for cell in cells):
        made.append(Section("chosen", "How λ was chosen by compliance's answers", _chosen_table(sweep, cells)))
    printed = beside(sweep, trials)
    if printed:
        made.append(Section("paper", "The paper's figures, beside ours", _paper_table(sweep, cells, printed)))
    return tuple(made)


def _axes(sweep: Sweep, cells: Sequence[Cell]) -> list[Column]:
    keys = list(sweep.scenario.axes)
    rows = [_swept(keys, cell) for cell in cells]
    return [
        Column(symbol(key), [row[i] for row in rows], numeric=not any(_number(cell[key]) is None for cell in cells))
        for i, key in enumerate(keys)
    ]


def _number(value: object) -> float | None:
    place = as_float(value)
    return None if math.isnan(place) else place


def _guess_table(sweep: Sweep, summary: Sequence[Cell]) -> PageTable:
    columns = [
        *_axes(sweep, summary),
        Column("attack", [cell["attack"] for cell in summary], numeric=False),
        Column("victims", [count(cell["victims"]) for cell in summary]),
        Column("b right, % (95%)", [_interval(cell, 1) for cell in summary]),
        Column("all attacks at once (99.9%)", [f"{c['family_low']:.1f}–{c['family_high']:.1f}" for c in summary]),
        Column("advantage (95%)", [_advantage(cell) for cell in summary]),
    ]
    if any(map(loader_only, summary)):
        columns.append(_loader_column(summary))
    return PageTable(columns, (_GUESSES, *((_LOADER.capitalize(),) if any(map(loader_only, summary)) else ())))


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
            Column(head, [_text(own, key) for own in lines], group=group)
            for head, key in (("before", before), ("after", after))
        ]
    columns.append(Column("gap at most 5", [f"{cell['below_tau']}/{cell['victims']}" for cell in cells]))
    columns += [
        Column(head, [_area(own, key) for own in lines], group="membership, AUC")
        for head, key in (("before", "membership_base"), ("after", "membership"))
    ]
    return PageTable(
        columns,
        (
            "Means over the victims of a split, ± the 95% interval over the splits"
            + ("." if any(len(own) > 1 for own in lines) else "; one split gives no interval.")
            + " Before: the model that the defence starts from.",
            "Membership: how well a model's loss tells rows that it was trained on from others of the group; 0.5 is a "
            "coin.",
        ),
    )


def _text(lines: Sequence[Trial], key: str) -> str:
    return str(estimate([line[key] for line in lines]))


def _area(lines: Sequence[Trial], key: str) -> str:
    found = estimate([line[key] for line in lines])
    return f"{found.mean:.3f}" + ("" if found.half is None else f"\u00a0±\u00a0{found.half:.3f}")


def _bound_table(sweep: Sweep, cells: Sequence[Cell]) -> PageTable:
    columns = _axes(sweep, cells)
    for head, key, digits in (
        ("W", "w", 2),
        ("EO", "eo", 1),
        ("PPR gap", "ppr_gap", 1),
        ("gap", "gap", 1),
        ("base rates' gap", "label_gap", 1),
    ):
        columns.append(Column(head, [f"{cell[key]:.{digits}f}" for cell in cells]))
    for head, key in (("Theorem 1", "bound_holds"), ("corrected", "corrected_bound_holds")):
        columns.append(Column(head, [f"{cell[key]}/{cell['splits']}" for cell in cells], group="held, of the splits"))
    errors = [f"{100 * cell['sampling_error']:.2f}" if "sampling_error" in cell else MISSING for cell in cells]
    columns.append(Column("to a sampling error of at most", errors))
    return PageTable(
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
        for head, key in (("Theorem 3", "bound_holds"), ("corrected", "corrected_bound_holds"))
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


def _paper_table(sweep: Sweep, cells: Sequence[Cell], rows: Sequence[Beside]) -> PageTable:
    keys = list(sweep.scenario.axes)
    own = [next(c for c in cells if all(c[key] == value for key, value in row.swept.items())) for row in rows]
    columns = [Column("cell", [_name(keys, cell) for cell in own], numeric=False)] + [
        Column(head, [getattr(row, part) for row in rows], numeric=part in ("printed", "measured"))
        for head, part in (
            ("", "what"),
            ("paper", "printed"),
            ("ours", "measured"),
            ("", "verdict"),
            ("where it is printed", "source"),
        )
    ]
    return PageTable(columns, (RULE,))


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
        return (f"{_LOADER.capitalize()} Nothing below is a finding.",)
    return (*_strongest(sweep, summary), *_met(beside(sweep, trials)))


def _strongest(sweep: Sweep, summary: Sequence[Cell]) -> Iterator[str]:
    rest = [key for key in sweep.scenario.axes if key != "developer.defence"]
    for defence in dict.fromkeys(cell["defence"] for cell in summary):
        best = max((cell for cell in summary if cell["defence"] == defence), key=lambda cell: cell["advantage"])
        low, high = best["family_low"], best["family_high"]
        verdict = (
            "which contains 50: not told from chance" if low <= 50 <= high else "which excludes 50: that is no chance"
        )
        told = [f"{symbol(key)} = {text}" for key, text in zip(rest, _swept(rest, best), strict=True)]
        at = "".join(f", {text}" for text in told if not text.endswith(MISSING))
        change = (
            f"The gap was {number(best['gap'])} points, EO {number(best['eo'])}."
            if defence == "none"
            else f"The gap went from {number(best['gap_base'])} to {number(best['gap'])} points, EO from "
            f"{number(best['eo_base'])} to {number(best['eo'])}."
        )
        yield (
            f"Defence “{defence}”{at}: the strongest attack, {best['attack']}, guessed {number(best['accuracy_b'])}% "
            f"of the bits right ({number(low)} to {number(high)} at 99.9% for all attacks at once, {verdict}). {change}"
        )


def _met(rows: Sequence[Beside]) -> Iterator[str]:
    if rows:
        verdicts = Counter(row.verdict for row in rows)
        told = [f"{verdicts.pop(verdict)} {verdict}" for verdict in (REPRODUCED, NOT_REPRODUCED) if verdict in verdicts]
        told += [f"{many} {verdict}" for verdict, many in verdicts.items()]
        yield f"Of {plural(len(rows), 'figure')} printed in the paper about these cells: {', '.join(told)}."


def settings(sweep: Sweep) -> list[tuple[str, str]]:
    """List how it was played."""
    scenarios = [cell.scenario for cell in sweep.cells]

    def several(values: Sequence[object]) -> str:
        return ", ".join(dict.fromkeys(map(setting, values)))

    shown = [
        ("Data", several([_data(one) for one in scenarios])),
        ("Defence", several([one.developer.defence for one in scenarios])),
        ("λ", several([_strength(one) for one in scenarios])),
        ("Rehearsal, ρ", several([one.developer.rehearsal for one in scenarios])),
        ("Purity, α", several([one.developer.purity for one in scenarios])),
        ("Victims a split", several([one.developer.victims for one in scenarios])),
        ("Splits", several([one.scenario.trials for one in scenarios])),
        ("Shadow models", several([one.adversary.shadows for one in scenarios])),
        ("Probes at most", several([one.adversary.probes for one in scenarios])),
        ("Models answer with", several([one.adversary.answers for one in scenarios])),
    ]
    private = [one.developer.training_epsilon for one in scenarios if "dp-sgd" in one.developer.defence]
    chosen = [one for one in scenarios if one.developer.lambdas]
    if private:
        shown.append(("ε of DP-SGD", several(private)))
    if chosen:
        shown.append(("Metric", several([METRICS[one.compliance.metric].title for one in chosen])))
        shown.append(("Mechanism", several([MECHANISMS[one.compliance.mechanism].title for one in chosen])))
        shown.append(("Budget of a trial, ε", several([one.epsilon for one in chosen])))
    return shown


def _strength(scenario: InferenceScenario) -> float | str:
    developer = scenario.developer
    if not developer.lambdas:
        return developer.strength
    return f"of {', '.join(map(setting, developer.lambdas))}, chosen by compliance's answers"


def _data(scenario: InferenceScenario) -> str:
    """Name the table and the attribute: of a user's file its format, or what it is called, not where it lies."""
    source, data = scenario.data.source, scenario.data
    name, _, where = source.partition(":")
    named = name if where else PurePath(source).name
    return named + (f", {data.protected}" if data.protected else "")


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
        "Clustered over data splits: victims of one split share their rows. The wider ones hold for all attacks of a "
        "cell at once.",
    ),
    (
        "Bounds",
        "Theorem 1 says that the gaps are at most W times EO, which needs equal base rates. The corrected bounds add "
        "what unequal ones do. Each is asked of every victim, to the sampling error of its own test rows.",
    ),
)


def draw(sweep: Sweep, summary: Sequence[Cell], trials: Sequence[Trial]) -> tuple[Figure, ...]:
    """Draw accuracy at guessing b by attack and defence, and gap and EO, along the swept number if there is one."""
    from sim.report.interval_plot import along, intervals

    if not summary:
        return ()
    keys = list(sweep.scenario.axes)
    axis = _axis(sweep, summary)
    rest = [key for key in keys if key != axis]
    title, what = "Accuracy at guessing b", "b right, %"
    groups: dict[str, list[tuple[str, float, float, float]]] = {}
    for cell in summary:
        bars = cell["accuracy_b"], cell["accuracy_b_low"], cell["accuracy_b_high"]
        if axis is None:
            groups.setdefault(_name(keys, cell), []).append((cell["attack"], *bars))
        else:
            several = [_name(rest, cell)] if rest else []
            groups.setdefault(", ".join([*several, cell["attack"]]), []).append((setting(cell[axis]), *bars))
    guess = (
        intervals("accuracy-b", title, what, groups)
        if axis is None
        else along(
            "accuracy-b",
            f"{title}, along {symbol(axis)}",
            "With 95% intervals over data splits. As far from the dotted line on either side is as much known.",
            (symbol(axis), what),
            groups,
            level=(50, "50%: a coin"),
            top=103,
        )
    )
    return (guess, _gap_figure(sweep, summary, trials, axis))


def _axis(sweep: Sweep, summary: Sequence[Cell]) -> str | None:
    """Find a swept number that takes several values whatever the others are."""
    keys: Sequence[str] = sweep.scenario.axes
    for axis in keys:
        places: dict[tuple[str, ...], set[float | None]] = {}
        for cell in summary:
            rest = tuple(setting(cell[key]) for key in keys if key != axis)
            places.setdefault(rest, set()).add(_number(cell[axis]))
        if all(len(values) > 2 and None not in values for values in places.values()):
            return axis
    return None


_DRAWN = {"gap before": "gap_base", "gap": "gap", "EO before": "eo_base", "EO": "eo"}


def _gap_figure(sweep: Sweep, summary: Sequence[Cell], trials: Sequence[Trial], axis: str | None) -> Figure:
    from sim.report.interval_plot import along

    keys = list(sweep.scenario.axes)
    rest = [key for key in keys if key != axis]
    # Before any defence is what it was without one.
    cells = _cells(sweep, summary)
    if axis is not None:
        cells = [cell for cell in cells if cell["defence"] != "none"] or cells
    several = axis is not None and len({_name(rest, cell) for cell in cells}) > 1
    lines: dict[str, list[tuple[str, float, float, float]]] = {}
    printed: dict[str, list[tuple[str, float]]] = {}
    for cell in cells:
        place = _name(keys, cell) if axis is None else setting(cell[axis])
        figure = paper_figure(scenario_of(sweep, {key: cell[key] for key in keys}))
        for what, key in _DRAWN.items():
            line = f"{_name(rest, cell)}, {what}" if several else what
            found = estimate([own[key] for own in _lines(sweep, cell, trials)])
            lines.setdefault(line, []).append((place, *_bars(found)))
            if (value := _printed(figure, key)) is not None:
                printed.setdefault(line, []).append((place, value))
    seen = "Means over the splits, with 95% intervals." if max(c["splits"] for c in cells) > 1 else "One split."
    if printed:
        others = dict.fromkeys(row.verdict for row in beside(sweep, trials) if row.verdict.startswith("not tested"))
        seen += " Hollow diamonds are the paper's figures" + (f": {', '.join(others)}." if others else ".")
    return along(
        "gap-eo",
        f"Gap and EO, along {symbol(axis)}" if axis else "Gap and EO, before and after the defence",
        seen,
        (symbol(axis) if axis else "", "points"),
        lines,
        printed=printed,
        level=(5, "5 points: the paper's τ"),
        joined=axis is not None,
    )


def _printed(figure: InferenceFigure | None, key: str) -> float | None:
    value: float | None = None if figure is None else getattr(figure, key)
    return value


def _bars(found: Estimate) -> tuple[float, float, float]:
    # A gap is neither below 0 nor above 100 points, whatever a t interval says.
    half = found.half or 0.0
    return found.mean, max(found.mean - half, 0.0), min(found.mean + half, 100.0)
