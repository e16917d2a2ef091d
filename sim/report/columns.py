"""The columns of a report, as data: one definition of a number serves the page, the terminal and CSV.

A game's ``columns.py`` defines each column's name, its value in a row, and its notation; its ``tables`` are what
`sim.report.terminal` prints and the page's sections show.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from sim.report.cells import Swept
from sim.report.estimates import FEWEST, IntervalEstimate, Range, estimate_of
from sim.report.notation import MISSING, number
from sim.report.tables import PageTable, PrintedColumn

Row = TypeVar("Row")


@dataclass(frozen=True)
class Measure(Generic[Row]):
    """One column of a report's tables.

    Attributes
    ----------
    name : the column's key in lines and summaries.
    title : its head on the page; by default its name.
    unit : follows the title.
    of : returns its value in a row: an estimate, a number, a text, or None. By default the row's value under its name.
    digits : number of decimals; by default three significant digits.
    short : its head in the terminal, which may have line breaks; without one, the terminal leaves the column out.
    about : its meaning, in words without a full stop.
    group : the head that it shares with its neighbours.
    words : whether it is set as text.
    main : whether the table exists for it: it is shown though all rows are equal.
    kept : whether it stays where a terminal is narrow, like a main column, at the expense of the key columns.
    bare : whether the terminal leaves its interval to the page.
    on_page : whether the page shows it, too.
    when : returns whether to show it, given the rows. A column without a value in any row is never shown, unless main.
    scale : its values where nothing is learned, or right, and where all is: the viewer shades trials by it.
    """

    name: str
    title: str = ""
    unit: str = ""
    of: Callable[[Row], Any] | None = None
    digits: int | None = None
    short: str = ""
    about: str = ""
    group: str = ""
    words: bool = False
    main: bool = False
    kept: bool = False
    bare: bool = False
    on_page: bool = True
    when: Callable[[Sequence[Row]], bool] | None = None
    scale: Range | None = None

    def value(self, row: Row) -> Any:
        """Return its value in a row; None if there is none."""
        if self.of is not None:
            return self.of(row)
        assert isinstance(row, Mapping), "a row that is none says how its columns are found"
        return row.get(self.name)

    def text(self, row: Row, *, brief: bool = False) -> str:
        """Return its text in a row, for the terminal if ``brief``, else for the page."""
        value = self.value(row)
        if value is None:
            return MISSING
        if isinstance(value, IntervalEstimate):
            value = IntervalEstimate(value.mean) if brief and self.bare else value
            return value.brief(self.digits or 0) if brief else value.text(self.digits or 0)
        if isinstance(value, str):
            return value
        return number(value) if self.digits is None else f"{value:,.{self.digits}f}".replace("-", "−")

    @property
    def head(self) -> str:
        """Its head on the page."""
        title = self.title or self.name
        return f"{title}, {self.unit}" if self.unit else title

    def shown(self, rows: Sequence[Row]) -> bool:
        """Return whether to show the column for these rows."""
        if self.when is not None and not self.when(rows):
            return False
        return self.main or any(self.value(row) is not None for row in rows)


def mean_of(name: str, within: Range) -> Callable[[Mapping[str, Any]], IntervalEstimate]:
    """Return an estimator of a mean over a cell's trials; the summary also has the standard deviation ``<name>_sd``."""
    return lambda cell: estimate_of(cell[name], cell[f"{name}_sd"], cell["trials"], within)


def share_of(name: str, of: str = "trials") -> Callable[[Mapping[str, Any]], IntervalEstimate]:
    """Return an estimator of a summary's share ``name`` / ``of``; its interval is ``<name>_low`` to ``<name>_high``."""

    def found(cell: Mapping[str, Any]) -> IntervalEstimate:
        ends = (cell[f"{name}_low"], cell[f"{name}_high"]) if cell[of] >= FEWEST else (None, None)
        return IntervalEstimate(cell[name] / cell[of], *ends)

    return found


def interval_of(name: str, interval: str = "") -> Callable[[Mapping[str, Any]], IntervalEstimate]:
    """Return a reader of a mean with the interval in the summary, from ``<interval>_low`` to ``<interval>_high``."""
    low, high = (f"{interval or name}_{end}" for end in ("low", "high"))
    return lambda cell: IntervalEstimate(cell[name], cell[low], cell[high])


@dataclass(frozen=True)
class Sheet(Generic[Row]):
    """A table of a report: its rows and its columns.

    Attributes
    ----------
    swept : its columns distinguish rows, and come first.
    caption : text below the table in the terminal, besides the columns' meanings.
    cell : returns a row's cell.
    keys : columns that distinguish rows of one cell.
    linked : whether a row links to its cell's trials.
    """

    name: str
    heading: str
    swept: Swept
    rows: Sequence[Row]
    columns: Sequence[Measure[Row]]
    notes: Sequence[str] = ()
    caption: str = ""
    cell: Callable[[Any], Mapping[str, Any]] = lambda row: row
    keys: Sequence[Measure[Row]] = ()
    linked: bool = True

    def brief(self) -> Sheet[Row]:
        """Return this table with its row names written for the terminal."""
        return replace(self, swept=replace(self.swept, write=self.swept.brief or self.swept.write))

    def told_apart(self) -> list[PrintedColumn]:
        """Return the columns that distinguish rows."""
        own = (PrintedColumn(key.head, [key.text(row) for row in self.rows], numeric=False) for key in self.keys)
        return [*self.swept.columns([self.cell(row) for row in self.rows]), *own]

    def words(self) -> PrintedColumn:
        """Return a single column of words that distinguishes rows."""
        keys = [[self.swept.name(self.cell(row)), *(key.text(row) for key in self.keys)] for row in self.rows]
        return PrintedColumn("played", [", ".join(filter(None, texts)) for texts in keys], numeric=False)

    def on_page(self) -> PageTable:
        """Return the table for the page."""
        keys = self.told_apart()
        columns = [
            PrintedColumn(
                one.head,
                [one.text(row) for row in self.rows],
                not one.words,
                one.group,
                about=f"{one.about[:1].upper()}{one.about[1:]}." if one.about else "",
                stays=one.main,
            )
            for one in self.columns
            if one.on_page and one.shown(self.rows)
        ]
        links = [self.swept.link(self.cell(row)) for row in self.rows] if self.linked else []
        return PageTable([*keys, *columns], self.notes, links, max(1, len(keys)))
