"""Which epsilon keeps the verdict of the four-fifths rule, whether the worst impact ratio is below 0.8.

    python benchmarks/verdicts.py [--table lsac:bar_pass_prediction.csv acs-coverage:db_ACSCoverage.csv] [--draws 100]
        [--figure docs/verdicts.svg]

A fifth of each table trains a logistic regression without protected columns, which accepts whom it scores at the base
rate or above. Each draw takes so many of the other people and asks once, for one way of making groups. The exact
verdict is of these same people; groups below 2% of them take no part, here by the exact sizes, there by noisy ones.

Right is how many noisy verdicts, of the estimated ratio, are the exact one. Held and wrong are how many intervals of
the ratio lie on one side of 0.8, that of the exact one or the other; all other intervals leave it open. Each number of
100 draws has a standard error of 2 where it is about 95. Where the exact verdict is "below", a small epsilon may be
right for no good reason: noise makes the worst of several ratios smaller. The interval leaves it open then.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from short import parsed

from compliance.answers.groups import released
from compliance.noise.sampling import Noise, Seeded
from compliance.records.groups import Attribute, Grouped
from fairwall.client.by_group import ByGroup
from fairwall.compliance.v1 import group_service_pb2 as wire
from fairwall.laws.groups.group_tables import FOUR_FIFTHS, WorstPair
from fairwall.tables.columns import Categories, TypedColumn
from fairwall.tables.reading import read
from sim.datasets import FORMATS, SHIPPED, DataError, load
from sim.report.drawing import looks
from sim.report.line_plot import Axis, Curve, LinePanel, line_plot

EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
SIZES = (300, 1_000, 3_000, 10_000, 30_000)
LEAST_SHARE, TRAINS = 0.02, 0.2
ENOUGH = 0.95
ATTRIBUTES = {
    "adult": {"race": "race", "sex": "sex"},
    "compas": {"race": "race", "sex": "sex"},
    "german": {"sex": "sex"},
    "lsac": {"race": "race1", "sex": "gender"},
    "acs-coverage": {"race": "RAC1P", "sex": "SEX"},
}
"""What each table calls its protected columns."""
HEAD = "table         by           people   least  ratio 90%        away   below  right   held   "
"""Then right, held and wrong of 100, at each epsilon."""
WAYS = (("sex",), ("race",), ("race", "sex"))
INK = "--ink: #1b1b1b; --soft: #565656; --grid: #e4e4e4; --faint: #bdbdbd; --card: #fff; background: #fff"
"""The colours that a page would give the figure."""


@dataclass(frozen=True, eq=False)
class World:
    """People of a table who trained no model, their groups by some attributes, and who is accepted, shape (people,)."""

    table: str
    by: tuple[str, ...]
    people: Grouped
    accepted: NDArray[np.float64]

    def worst(self, drawn: NDArray[np.intp], epsilon: float, noise: Noise) -> WorstPair | None:
        """Ask about some of the people; None where no two groups are compared."""
        header = wire.ByGroupHeader(by=self.by, measures=[wire.MEASURE_SELECTION_RATE], epsilon=epsilon)
        some = Grouped(self.people.attributes, self.people.codes[:, drawn], self.people.labels[drawn])
        told = released(some, header, self.accepted[drawn][np.newaxis], noise)
        groups = tuple(product(*(each.values for each in some.attributes)))
        counts = ByGroup(self.by, groups, ("selection_rate",), 1, told, LEAST_SHARE, epsilon, 0.0, 0.0)
        found = counts.worst_pair("selection_rate")
        return None if found is None or math.isnan(found[2].ratio) else found[2]

    def least(self, drawn: NDArray[np.intp]) -> int:
        """Return how many people the smallest group has that is compared."""
        sizes = np.bincount(self.people.cells(self.by)[0][drawn])
        return int(sizes[sizes >= LEAST_SHARE * len(drawn)].min())


@dataclass(frozen=True, eq=False)
class Cell:
    """What came of all draws of so many people; the last three by epsilon, as shares of the draws.

    Parameters
    ----------
    ratios, least : ndarray, shape (draws,)
        The exact worst ratio, and how many people the smallest group has.
    """

    world: World
    people: int
    ratios: NDArray[np.float64]
    least: NDArray[np.int64]
    right: NDArray[np.float64]
    held: NDArray[np.float64]
    wrong: NDArray[np.float64]


def worlds(source: str) -> Iterator[World]:
    """Read a table, train its model, and give each way of making groups.

    Raises
    ------
    DataError
        As `sim.datasets.load`.
    """
    from sklearn.linear_model import LogisticRegression

    name, _, where = source.partition(":")
    columns = read(SHIPPED[name].path, name) if name in SHIPPED else FORMATS[name].read(Path(where), source)
    values = {ours: Categories.of(TypedColumn.of(source, theirs, columns)) for ours, theirs in ATTRIBUTES[name].items()}
    first, *others = ATTRIBUTES[name].values()
    # Whichever value is called advantaged: all people are wanted, and no feature that is protected.
    one, *rest_of_them = next(iter(values.values())).values
    table = load(source, protected=first, advantaged=one, disadvantaged=tuple(rest_of_them), drop=others)
    order = np.random.default_rng(0).permutation(len(table.labels))
    trains, rest = np.split(order, [int(TRAINS * len(order))])
    model = LogisticRegression(max_iter=1_000).fit(table.encoded[trains], table.labels[trains])
    accepted = model.predict_proba(table.encoded[rest])[:, 1] >= table.labels[trains].mean()
    for by in (by for by in WAYS if values.keys() >= set(by)):
        attributes = tuple(Attribute(each, tuple(map(str, values[each].values))) for each in by)
        codes = np.array([values[each].codes[rest] for each in by], np.uint8)
        yield World(name, by, Grouped(attributes, codes, table.labels[rest]), accepted.astype(np.float64))


def drawn(world: World, people: int, draws: int) -> Cell:
    """Draw people and noise, and hold each verdict against the exact one."""
    rng = np.random.default_rng(1)
    ratios, least = np.empty(draws), np.empty(draws, np.int64)
    right, held, wrong = np.zeros((3, draws, len(EPSILONS)))
    for draw in range(draws):
        rows = rng.choice(len(world.accepted), people, replace=False)
        exact = world.worst(rows, math.inf, Seeded(rng))
        assert exact is not None, "some two groups are large enough"
        ratios[draw], least[draw] = exact.ratio, world.least(rows)
        below = exact.ratio < FOUR_FIFTHS
        for place, epsilon in enumerate(EPSILONS):
            told = world.worst(rows, epsilon, Seeded(rng))
            if told is not None:
                decided = {True: told.ratio_high < FOUR_FIFTHS, False: told.ratio_low >= FOUR_FIFTHS}
                right[draw, place] = (told.ratio < FOUR_FIFTHS) == below
                held[draw, place], wrong[draw, place] = decided[below], decided[not below]
    return Cell(world, people, ratios, least, *(each.mean(axis=0) for each in (right, held, wrong)))


def least_epsilon(shares: NDArray[np.float64]) -> float:
    """Return the least epsilon from which on all are enough; infinite if the largest is not."""
    short = np.flatnonzero(shares < ENOUGH)
    from_here = int(short[-1]) + 1 if len(short) else 0
    return EPSILONS[from_here] if from_here < len(EPSILONS) else math.inf


def line(cell: Cell) -> str:
    """Write a cell as a line: the least epsilons, then right, held and wrong of 100 at each epsilon."""
    shares = zip(cell.right, cell.held, cell.wrong, strict=True)
    counted = ("/".join(f"{100 * share:.0f}" for share in each) for each in shares)
    low, middle, high = np.quantile(cell.ratios, (0.05, 0.5, 0.95))
    enough = (f"{least_epsilon(each):g}".replace("inf", "none") for each in (cell.right, cell.held))
    return (
        f"{cell.world.table:12}  {' by '.join(cell.world.by):11}  {cell.people:6}  {np.median(cell.least):6.0f}  "
        f"{middle:.3f} {low:.2f}-{high:.2f}  {np.median(np.abs(cell.ratios - FOUR_FIFTHS)):.3f}  "
        f"{np.mean(cell.ratios < FOUR_FIFTHS):5.0%}  {'  '.join(f'{each:>5}' for each in enough)}   "
        f"{' '.join(f'{each:>9}' for each in counted)}"
    )


def figure(cells: Sequence[Cell]) -> str:
    """Draw the least epsilons by the number of people, a column of panels for each way of making groups."""
    of = looks(dict.fromkeys(cell.world.table for cell in cells))
    none = 2 * EPSILONS[-1]

    def panel(by: tuple[str, ...], shares: str) -> LinePanel:
        curves = []
        for place, (table, look) in enumerate(of.items()):
            mine = [cell for cell in cells if (cell.world.table, cell.world.by) == (table, by)]
            # Side by side, where several tables need the same.
            points = [
                (cell.people * 1.15 ** (place - 2), min(least_epsilon(getattr(cell, shares)), none)) for cell in mine
            ]
            curves += [Curve(points, look, table)] if points else []
        return LinePanel(curves, title=" by ".join(by) if shares == "right" else "")

    y_ticks = {**{epsilon: f"{epsilon:g}" for epsilon in EPSILONS}, none: "none"}
    axes = [
        Axis(f"least ε: {what}", log=True, ticks=y_ticks, low=0.08, high=1.25 * none)
        for what in ("estimate right", "interval decides")
    ]
    drawing = line_plot(
        "verdicts",
        "",
        "",
        "",
        [[panel(by, shares) for by in WAYS] for shares in ("right", "held")],
        Axis("people", log=True, ticks={300: "300", 3_000: "3,000", 30_000: "30,000"}, low=210, high=43_000),
        axes,
        inches=(6.0, 5.2),
        columns=5,
    )
    return drawing.svg.replace("<svg", f'<svg style="{INK}"', 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", nargs="+", default=[], metavar="FORMAT:PATH", help="besides those that are shipped")
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--figure", type=Path, metavar="FILE.svg")
    asked = parsed(parser, draws=2, sizes=[300])
    for source in asked.table:
        if source.partition(":")[0] not in ATTRIBUTES.keys() - SHIPPED.keys():
            parser.error(f"--table {source}: not one of lsac:PATH, acs-coverage:PATH")
    try:
        there = [world for source in (*SHIPPED, *asked.table) for world in worlds(source)]
    except DataError as error:
        parser.error(str(error))
    print(HEAD + " ".join(f"{epsilon:>9g}" for epsilon in EPSILONS))
    cells = []
    for world in there:
        for people in (size for size in asked.sizes if size <= len(world.accepted)):
            cells.append(drawn(world, people, asked.draws))
            print(line(cells[-1]), flush=True)
    if missing := ATTRIBUTES.keys() - {cell.world.table for cell in cells}:
        print(f"Not looked at, for want of --table: {', '.join(sorted(missing))}")
    if asked.figure:
        asked.figure.write_text(figure(cells), encoding="utf-8")


if __name__ == "__main__":
    main()
