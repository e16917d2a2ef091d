"""What a run of the inference game comes to: a table for the terminal, and what the page shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from sim.report.notation import count, number, setting, span, symbol
from sim.results import summarise
from sim.scenario import Plan

if TYPE_CHECKING:
    from sim.report.figures import Figure

_LEGEND = (
    "b right: balanced accuracy at guessing the bit, its 95% interval over data splits; 50 is a coin, and as far from "
    "it on either side is as much known. gap: difference of the accuracies on the two groups, points. EO: equalized "
    "odds gap, points. Both before and after the defence."
)


def terminal_table(plan: Plan, summary: Sequence[Mapping[str, Any]]) -> Table:
    """Lay out a run's summary for a terminal of 80 columns."""
    keys = list(plan.scenario.axes)
    table = Table(
        title=Text(plan.scenario.scenario.name),
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        collapse_padding=True,
        caption_justify="left",
    )
    for key in keys:
        table.add_column(Text(symbol(key)), overflow="fold")
    heads = ("attack", "b right, %", "advantage", "gap\nbefore", "gap", "EO\nbefore", "EO", "right\n%")
    for head in heads:
        table.add_column(Text(head), justify="left" if head == "attack" else "right", no_wrap=head != "attack")
    for cell in summary:
        texts = (
            *(setting(cell[key]) for key in keys),
            cell["attack"],
            _interval(cell, "accuracy_b", 0),
            f"{cell['advantage']:.2f}",
            *(f"{cell[key]:.1f}" for key in ("gap_base", "gap", "eo_base", "eo", "accuracy")),
        )
        table.add_row(*map(Text, texts))
    table.caption = Text(_LEGEND, style="dim")
    return table


def _interval(cell: Mapping[str, Any], name: str, digits: int) -> str:
    value, low, high = (cell[key] for key in (name, f"{name}_low", f"{name}_high"))
    return f"{value:.1f} ({low:.{digits}f}–{high:.{digits}f})"


def _advantage(cell: Mapping[str, Any]) -> str:
    return f"{cell['advantage']:.2f} ({cell['advantage_low']:.2f}–{cell['advantage_high']:.2f})"


def columns(plan: Plan, summary: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[str], str]]:
    """Lay out the page's table: heads, texts, and the group of columns that each belongs to."""
    guess, models, bounds = "the adversary's guess", "the victims", "bounds held, of so many splits"
    laid: list[tuple[str, list[str], str]] = [
        (symbol(key), [setting(cell[key]) for cell in summary], "") for key in plan.scenario.axes
    ]
    laid += [
        ("attack", [cell["attack"] for cell in summary], guess),
        ("victims", [count(cell["victims"]) for cell in summary], guess),
        ("b right, % (95%)", [_interval(cell, "accuracy_b", 1) for cell in summary], guess),
        ("for all attacks at once (99.9%)", [f"{c['family_low']:.1f}–{c['family_high']:.1f}" for c in summary], guess),
        ("advantage (95%)", [_advantage(cell) for cell in summary], guess),
    ]
    for head, key in (
        ("gap before", "gap_base"),
        ("gap", "gap"),
        ("EO before", "eo_base"),
        ("EO", "eo"),
        ("PPR gap", "ppr_gap"),
        ("base rates' gap", "label_gap"),
        ("accuracy before", "accuracy_base"),
        ("accuracy", "accuracy"),
    ):
        laid.append((f"{head}, %", [f"{cell[key]:.1f}" for cell in summary], models))
    for head, key in (("W", "w"), ("membership AUC before", "membership_base"), ("membership AUC", "membership")):
        laid.append((head, [f"{cell[key]:.2f}" for cell in summary], models))
    laid.append(("gap at most 0.05", [f"{cell['below_tau']}/{cell['victims']}" for cell in summary], models))
    for head, key in (("Theorem 1's", "bound_holds"), ("corrected", "corrected_bound_holds")):
        laid.append((head, [f"{cell[key]}/{cell['splits']}" for cell in summary], bounds))
    return laid


def played(plan: Plan, trials: Sequence[Mapping[str, Any]]) -> str:
    """Say what was played, and who held what."""
    data, adversary = plan.scenario.data, plan.scenario.adversary
    splits = len({trial["split_seed"] for trial in trials})
    victims = span({trial["victims"] for trial in trials}) if trials else "no"
    return (
        f"Three separate processes played on {splits} splits of the data. The referee flipped a bit for each of "
        f"{victims} models a split; the developer, which in this game holds {data.protected or 'the groups'}, trained "
        "each on the rows of one group and released it as a black box. The adversary, which holds other rows, asked "
        f"each model about {adversary.probes:,} rows at most and guessed its bit; it never saw a bit, a weight, or a "
        "row that a model was trained on."
    )


def findings(summary: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Say for each defence what the best attack on it knew."""
    found = []
    for defence in dict.fromkeys(cell["defence"] for cell in summary):
        best = max((cell for cell in summary if cell["defence"] == defence), key=lambda cell: cell["advantage"])
        low, high = best["family_low"], best["family_high"]
        verdict = (
            "the interval that holds for all attacks at once contains 50: nothing was shown to leak"
            if low <= 50 <= high
            else "the interval that holds for all attacks at once excludes 50"
        )
        found.append(
            f"Defence “{defence}”: the strongest attack, {best['attack']}, was right about "
            f"{number(best['accuracy_b'])}% of the bits ({number(low)} to {number(high)} at 99.9% for all attacks at "
            f"once; {verdict}). The gap went from {number(best['gap_base'])} to {number(best['gap'])} points, EO from "
            f"{number(best['eo_base'])} to {number(best['eo'])}."
        )
    return tuple(found)


def settings(plan: Plan) -> list[tuple[str, str]]:
    """List how it was played."""
    scenarios = [cell.scenario for cell in plan.cells]

    def several(values: Sequence[object]) -> str:
        return ", ".join(dict.fromkeys(map(setting, values)))

    return [
        ("Data", several([f"{one.data.source}, {one.data.protected}" for one in scenarios])),
        ("Defence", several([one.developer.defence for one in scenarios])),
        ("λ", several([one.developer.strength for one in scenarios])),
        ("Rehearsal, ρ", several([one.developer.rehearsal for one in scenarios])),
        ("Purity, α", several([one.developer.purity for one in scenarios])),
        ("Victims a split", several([one.developer.victims for one in scenarios])),
        ("Splits", several([one.scenario.trials for one in scenarios])),
        ("Shadow models", several([one.adversary.shadows for one in scenarios])),
        ("Probes at most", several([one.adversary.probes for one in scenarios])),
        ("Models answer with", several([one.adversary.answers for one in scenarios])),
    ]


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


def draw(plan: Plan, summary: Sequence[Mapping[str, Any]]) -> tuple[Figure, ...]:
    """Draw accuracy at guessing b, attack by attack, for every defence."""
    from sim.report.figures import intervals

    keys = plan.scenario.axes
    groups: dict[str, list[tuple[str, float, float, float]]] = {}
    for cell in summary:
        name = ", ".join(f"{symbol(key)} {setting(cell[key])}" for key in keys) or cell["defence"]
        groups.setdefault(name, []).append(
            (cell["attack"], cell["accuracy_b"], cell["accuracy_b_low"], cell["accuracy_b_high"])
        )
    return (intervals("accuracy-b", "Accuracy at guessing b", "b right, %", groups),) if groups else ()


def summary_of(plan: Plan, trials: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Sum up a run's lines."""
    return summarise(trials, list(plan.scenario.axes))
