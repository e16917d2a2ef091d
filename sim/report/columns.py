"""The columns of a report, as data: what is said once of a number is shown on the page, in the terminal and in CSV.

A game's ``columns.py`` says of each column what it is called, how it is found in a row, and how it is written; its
``tables`` are what `sim.report.terminal` prints, and what stands in the page's sections.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from sim.report.cells import Swept
from sim.report.estimates import FEWEST, Estimate, Range, estimate_of
from sim.report.notation import MISSING, number
from sim.report.tables import Column, PageTable

Row = TypeVar("Row")


@dataclass(frozen=True)
class Measure(Generic[Row]):
    """One column of a report's tables.

    Attributes
    ----------
    name : what lines and summaries call it.
    title : its head on the page; by default its name.
    unit : stands behind the title.
    of : how it is found in a row: an estimate, a number, a text, or None. By default it is what the row has by its
        name.
    digits : so many decimals; by default three significant digits.
    short : its head in the terminal, which may have line breaks; the terminal leaves out a column that has none.
    about : what it means: words without a full stop.
    group : the head that it shares with its neighbours.
    words : whether it is set as text.
    main : whether the table is for it: it is set though all rows say the same.
    kept : whether what tells rows apart gives way to it where a terminal is narrow, as it does to a main one.
    bare : whether the terminal leaves its interval to the page.
    on_page : whether the page has it, too.
    when : says of the rows whether to show it. One that no row has is never shown, unless it is a main one.
    scale : from where nothing is learned, or nothing is right, to where all is: the viewer shades trials by it.
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
        """Find it in a row; None where there is none."""
        if self.of is not None:
            return self.of(row)
        assert isinstance(row, Mapping), "a row that is none says how its columns are found"
        return row.get(self.name)

    def text(self, row: Row, *, brief: bool = False) -> str:
        """Write it, for the terminal or for the page."""
        value = self.value(row)
        if value is None:
            return MISSING
        if isinstance(value, Estimate):
            value = Estimate(value.mean) if brief and self.bare else value
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
        """Say whether these rows show it."""
        if self.when is not None and not self.when(rows):
            return False
        return self.main or any(self.value(row) is not None for row in rows)


def mean_of(name: str, within: Range) -> Callable[[Mapping[str, Any]], Estimate]:
    """Estimate a mean over a cell's trials, of which the summary has the standard deviation ``<name>_sd``, too."""
    return lambda cell: estimate_of(cell[name], cell[f"{name}_sd"], cell["trials"], within)


def share_of(name: str, of: str = "trials") -> Callable[[Mapping[str, Any]], Estimate]:
    """Give in which share of a cell's trials something was so, or of as many as it could be in: ``of``.

    The summary has the count, and the share's interval from ``<name>_low`` to ``<name>_high``.
    """

    def found(cell: Mapping[str, Any]) -> Estimate:
        ends = (cell[f"{name}_low"], cell[f"{name}_high"]) if cell[of] >= FEWEST else (None, None)
        return Estimate(cell[name] / cell[of], *ends)

    return found


def interval_of(name: str, interval: str = "") -> Callable[[Mapping[str, Any]], Estimate]:
    """Take a mean whose interval the summary has: from ``<interval>_low`` to ``<interval>_high``."""
    low, high = (f"{interval or name}_{end}" for end in ("low", "high"))
    return lambda cell: Estimate(cell[name], cell[low], cell[high])


@dataclass(frozen=True)
class Sheet(Generic[Row]):
    """A table of a report: rows, and what is shown of them.

    Attributes
    ----------
    name, heading : of the page's section that it stands in.
    swept : its columns tell rows apart, and come first.
    notes : what the page says below it.
    caption : what the terminal says below it besides what its columns mean.
    cell : gives a row's cell.
    keys : what tells rows of one cell apart.
    linked : whether a row leads to its cell's trials.
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
        """Give it as the terminal writes what tells rows apart."""
        return replace(self, swept=replace(self.swept, write=self.swept.brief or self.swept.write))

    def told_apart(self) -> list[Column]:
        """Give the columns that tell rows apart."""
        own = (Column(key.head, [key.text(row) for row in self.rows], numeric=False) for key in self.keys)
        return [*self.swept.columns([self.cell(row) for row in self.rows]), *own]

    def words(self) -> Column:
        """Give one column that tells rows apart in words."""
        keys = [[self.swept.name(self.cell(row)), *(key.text(row) for key in self.keys)] for row in self.rows]
        return Column("played", [", ".join(filter(None, texts)) for texts in keys], numeric=False)

    def on_page(self) -> PageTable:
        """Lay it out for the page."""
        keys = self.told_apart()
        columns = [
            Column(
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
