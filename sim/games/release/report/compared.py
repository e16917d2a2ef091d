"""What a run that was held against published figures comes to, for a terminal of 80 columns."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table

from sim.games.release.compare import BARS, REPRODUCTION_CELLS, REPRODUCTION_SEEDS, ROUNDING, Comparison, Held
from sim.report.notation import MISSING, number, plural


def compared(held: Held, everything: bool) -> RenderableType:
    """Lay out comparisons, all or those beyond their tolerance, and what they come to together."""
    shown = [each for each in held.comparisons if everything or each.beyond]
    return Group(*([_table(shown, held.exact)] if shown else []), *_summary(held), _verdict(held))


def _table(shown: list[Comparison], exact: bool) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=0, show_edge=False)
    for head in ("data", "protocol", "split"):
        table.add_column(head, no_wrap=True)
    table.add_column("ε", justify="right", no_wrap=True)
    table.add_column("metric", no_wrap=True)
    for head in ("seeds", "difference", "tolerance"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for each in shown:
        cell = each.cell
        table.add_row(
            cell.data,
            cell.protocol,
            cell.split or MISSING,
            number(cell.epsilon),
            each.metric,
            str(each.seeds),
            f"{each.difference:+.2g}",
            MISSING if each.tolerances is None else f"{each.tolerances[0]:.2g}",
            _word(each, exact),
        )
    return table


def _word(each: Comparison, exact: bool) -> str:
    if each.tolerances is None:
        return "too few"
    if not each.beyond:
        return "agrees"
    return "differs" if exact else f"> {each.beyond} SE"


def _summary(held: Held) -> list[str]:
    compared = held.compared
    lines = [
        f"cells: {held.cells():,} of the file's {held.published:,}, "
        f"{held.cells(REPRODUCTION_SEEDS):,} of them in {REPRODUCTION_SEEDS} seeds or more"
    ]
    if held.exact:
        worst = max(abs(each.difference) for each in compared)
        lines.append(f"{plural(len(compared), 'comparison')}, each seed by itself: largest difference {worst:.2g}")
    else:
        shares = (
            f"{100 * held.share(errors):.1f}% beyond {errors} standard errors (at most {100 * bar:g}%)"
            for errors, bar in zip((2, 3), BARS, strict=True)
        )
        lines += [f"{plural(len(compared), 'comparison')}:", *(f"  {share}" for share in shares)]
        study = "drawn by each seed (appendix)" if held.drawn else "the same in each trial (main study)"
        lines.append(f"sensitive columns: {study}; the file does not say")
    few = len(held.comparisons) - len(compared)
    if few:
        lines.append(f"not compared, too few seeds: {few:,}")
    if held.left_out:
        lines.append(f"skipped, not a number: {plural(held.left_out, 'figure')}")
    return lines


def _verdict(held: Held) -> str:
    if held.exact:
        return f"{'agrees' if held.well else 'DIFFERS'}: tolerance {ROUNDING:g} for each seed"
    found = "agrees" if held.well else "DIFFERS"
    if held.reproduction:
        return f"{found}: a reproduction of the published study" if held.well else f"{found}: no reproduction"
    return f"{found}; a reproduction takes {REPRODUCTION_CELLS} cells in {REPRODUCTION_SEEDS} seeds or more each"
