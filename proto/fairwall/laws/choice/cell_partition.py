"""Cells of people with similar predictions: one release answers a whole batch.

**Release.** A public partition of the n people into C cells, and T_c, the number of disadvantaged people in each, with
discrete Laplace noise, P(k) ~ exp(-|k| rate). A flip changes one T_c by 1, so all of them together cost one rate, for
any number of cells and models. N0 is their sum; the more cells, the more noise adds up in it. Releasing N0 separately,
for a part of epsilon, never promised the smaller error where it was tried, epsilon 0.1 to 5: cells lose more by it.

The partition is computed from predictions and labels only. If it depended on A, so would the set of cells, and nothing
would be private.

**Answers.** u = X z with z within cells: `fairwall.laws.choice.posterior`, where S has a row of ones for each cell.
Cells cannot tell how z goes with X within a cell, so what is lost is the sum of squares of X within cells, times
s(1-s).

**Partition.** People are points, one coordinate for each model: those of X, or of its first `_DIRECTIONS` principal
components, which keep nearly all of the distances where models are alike. Beginning with all people, the cell whose
best cut removes most of the sum of squares is cut in two: at right angles to its leading principal direction, where
the sum of squares within both parts is least, with at least `least_people` on either side. The order of the cuts makes
partitions into 1, 2, 3, ... cells, each finer than the one before; each cell is an interval of people in one order.

**How small.** Among k people chance leaves a variance of k s(1-s); the noise on their count is about 2/epsilon^2. A
cell is cut as long as the first exceeds the second by as much as among `CELL_MIN` people at epsilon 1: up to epsilon 1
a cell hides who in it is disadvantaged, while at epsilon 5 the count of one person is next to certain, as epsilon says.

**How many.** More cells have less sum of squares within, and more noise. The number with the least predicted error is
taken, `fairwall.laws.choice.posterior.predicted_error`, which does not look at A either, and counts the variance of the
first components U'X of X X' = U diag(l) U'. Cells share nobody, so D there is diagonal. For the other components, where
tau adds little, the variance is taken at tau = 0.

**Tried, and left.** A part of epsilon on coarse cells, and finer ones where groups seem to differ: at best 1.04 times
less error, at a large epsilon many times more. Weighted sums in the span of the models, found by gradient descent, with
noise from one cube, in place of counts: 1.1 to 1.4 times less for scores of ten learners, nothing for decisions, and
several times more for thresholds of one score and for shapes that the prior does not foresee.

**The residual of cells, measured**: one weighted sum over the disadvantaged besides the cells' counts.
Cells tell nothing of how z, the disadvantaged, goes with X among the people of one cell, and a prior that expects
chance there is wrong by as much as a gap hides there: scores in three clusters, each a little higher for one group, are
cut into three cells that show no gap at all. The residual of X within cells, L, is small where models are near one
another, and mostly in one direction: of L L' the leading one, d. So w = d'L is a weight for each person, and w'z a sum
that a small part of epsilon measures well enough.

**Weights** are whole numbers of 1/`STEPS`, at most 1 either way, and add up to 0 in each cell, so that the sum repeats
nothing of the counts. The largest are cut off to the level that an eighth of the people have, the crowd; where fewer
have half of the largest in the end, nothing is measured. So the sum reveals of nobody more than the count of a cell of
as many people. A flip moves the sum by 1 at most, and a part x of epsilon costs x epsilon.

**The value of a sum.** z may go with w by a correlation of `CORRELATION`, and w'z is then B = CORRELATION
sqrt(SHARE (1-SHARE) n w'w), with `SHARE` of the people disadvantaged. By u = (X w / w'w) w'z that is an error of the
gaps, unknown to the prior. It is added to the error expected of cells at all of epsilon. Where a part x is spent on the
sum, the sum's noise is added instead, to an error 1/(1-x) times as large. The least of these decides, and is the
expected error when mechanisms are compared: what the prior does not foresee is measured, or counts against cells. With
a fifth more for B, batches of real scores have up to 1.5 times the error (`benchmarks/batch_error.py`), and with a
tenth less likely intervals miss a gap within three clusters of scores in a quarter of draws (`benchmarks/shapes.py`).

**Answers** take from the prior nothing about w'z but that it is about as large as a part of B: z gets g w, with
Var g = c^2 (B / w'w)^2, and the measurement decides among c (`fairwall.laws.choice.posterior.LOOSE`).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Floats
from fairwall.laws.choice.posterior import (
    SHARE,
    centred_values,
    directions_of,
    predicted_error,
    structures,
    variances_told,
)
from fairwall.laws.privacy.amounts import least_scale

CELL_MIN = 10
"""Least number of people in a cell after a cut, up to epsilon 1."""

_FEW = 2**14
"""Target number of people in the public sample by which very many people are cut."""

_SEED = 2027
_VARIANCE_MIN = 1e-6
_DIRECTIONS = 32
_CELLS_MAX = 2000


@dataclass(frozen=True, eq=False)
class CellCut:
    """A cut of one cell by a bound along a direction.

    `cell` is the number of the cut that created the cell, 0 for everybody; people below the bound keep its number.
    """

    cell: int
    direction: Floats
    bound: float


@dataclass(frozen=True, eq=False)
class Cuts:
    """Nested partitions of people.

    Parameters
    ----------
    order : the people, by position, so that each cell of each partition is an interval, shape (n,).
    at : where `order` is cut, the most telling cut first; the partition into c cells has the first c - 1 of them.
    squares : l, the nonzero eigenvalues of X X', the largest first, shape (r,).
    directions : the first columns of U, shape (m, at most r).
    means : of each model's predictions about these people, shape (m,).
    found : the cuts, the most telling first.
    """

    order: NDArray[np.intp]
    at: NDArray[np.intp]
    squares: Floats
    directions: Floats
    means: Floats
    found: tuple[CellCut, ...]

    @property
    def most(self) -> int:
        """The number of cells of the finest partition."""
        return len(self.at) + 1

    def starts(self, cells: int) -> NDArray[np.intp]:
        """Return the start in `order` of each cell of a partition, ascending, shape (cells,)."""
        return np.concatenate([np.zeros(1, np.intp), np.sort(self.at[: cells - 1])])

    def cell_of(self, cells: int) -> NDArray[np.intp]:
        """Return each person's cell, 0 .. cells-1, shape (n,)."""
        return _numbered(self.order, self.at[: cells - 1])

    def cell_of_others(self, values: Floats, cells: int) -> NDArray[np.intp]:
        """Return the cells of other people, shape (n,), from their predictions, shape (m, n)."""
        points = self.directions.T @ (values - self.means[:, np.newaxis])
        order, at, _ = _cut_as(points, 0, self.found[: cells - 1])
        return _numbered(order, at)


def enlarged(cell_of: NDArray[np.intp], cells: int, least: int) -> NDArray[np.intp]:
    """Return the cells, shape (n,), after merging those of fewer than `least` people into similar neighbouring ones."""
    people, place = np.bincount(cell_of, minlength=cells), np.arange(cells)
    for cell in range(cells):
        if 0 < people[cell] < least:
            before = np.flatnonzero(people[:cell])
            other = cell + 1 if cell + 1 < cells else before[-1] if before.size else cell
            place[place == cell] = other
            people[other], people[cell] = people[other] + people[cell], 0
    return place[cell_of]


def _numbered(order: NDArray[np.intp], at: Sequence[int] | NDArray[np.intp]) -> NDArray[np.intp]:
    """Return each person's cell, shape (n,), for an order cut at some places."""
    starts, found = np.sort(np.append(0, at)).astype(np.intp), np.empty(len(order), np.intp)
    found[order] = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(order)))
    return found


def cells_scale(epsilon: float) -> float:
    """Return the scale of epsilon-private noise on counts: 1 / epsilon, rounded up; ValueError unless in (0, inf)."""
    if not 0 < epsilon < math.inf:
        raise ValueError("epsilon must be above 0 and finite")
    return least_scale(epsilon)


def least_people(epsilon: float) -> int:
    """Return the least number of people in a cell after a cut."""
    return math.ceil(CELL_MIN / max(1.0, epsilon) ** 2)


def part_of(people: int, many: int) -> NDArray[np.intp]:
    """Return about `many` positions of people, drawn with a fixed seed: public, and always the same."""
    return np.unique(np.random.default_rng(_SEED).integers(0, people, many))


def least_among(least: int, stands_for: float) -> int:
    """Return the least sample members in a cell: `CELL_MIN` of them, or enough to stand for as many people."""
    return max(min(least, CELL_MIN), math.ceil(least / stands_for))


def discrete_variance(scale: float) -> float:
    """Return discrete Laplace noise's variance 2 r / (1 - r)^2, r = exp(-1 / scale); at least `_VARIANCE_MIN`."""
    return max(2 * math.exp(-1 / scale) / math.expm1(-1 / scale) ** 2, _VARIANCE_MIN)


def narrowed(counts: Floats, people: Floats, variances: Floats, share: float) -> tuple[Floats, Floats]:
    """Return noisy counts without uninformative excess beyond what cells can hold, still unbiased, and their variances.

    A cell has from 0 to k disadvantaged people. Discrete Laplace noise has no memory: once it leads to 0 or below, the
    distance beyond 0 has one distribution, with mean r/(1-r), r = exp(-1/scale), whatever the count z is; likewise
    above k. The distance says nothing of z, and its mean replaces it (Rao and Blackwell): -r/(1-r) for all counts at
    most 0, k + r/(1-r) for all at least k. The variance 2r/(1-r)^2 falls by the distance's, r/(1-r)^2, times its
    probability (r^z + r^(k-z))/(1+r). For cells of one person that leaves half: the variance of randomised response.

    `counts`, `people`, `variances`: of cells, shape (cells,): noisy counts, k of at least 1, and 2r/(1-r)^2. `share`:
    of disadvantaged people: for the variances, z is taken as binomial.
    """
    # v r^2 - 2(v+1) r + v = 0
    r = variances / (variances + 1 + np.sqrt(2 * variances + 1))
    beyond = r / (1 - r)
    found = np.where(counts <= 0, -beyond, np.where(counts >= people, people + beyond, counts))
    at_ends = ((1 - share + share * r) ** people + (share + (1 - share) * r) ** people) / (1 + r)
    return found, np.maximum(variances - at_ends * r / (1 - r) ** 2, _VARIANCE_MIN)


def cut(values: Floats, least: int = CELL_MIN) -> Cuts:
    """Cut people into up to n / `least` cells of similar values, each of at least `least` people.

    There are fewer where everybody in a cell has the same values. The values are m models' predictions for n people,
    shape (m, n), public; nothing else is looked at.
    """
    n = values.shape[1]
    centred = centred_values(values)
    squares, directions = directions_of(centred @ centred.T)
    points = directions[:, :_DIRECTIONS].T @ centred
    if n <= 2 * _FEW:
        order, at, found = _cut(points, least)
    else:
        # Very many people get the cuts of a public sample.
        few = points[:, part_of(n, _FEW)]
        _, _, found = _cut(few, least_among(least, n / few.shape[1]))
        order, at, found = _cut_as(points, least, found)
    return Cuts(order, np.array(at, np.intp), squares, directions[:, :_DIRECTIONS], values.mean(axis=1), tuple(found))


def _cut(points: Floats, least: int) -> tuple[NDArray[np.intp], list[int], list[CellCut]]:
    """Cut people by their points, shape (r, n); return their order, its cut places, and the cuts."""
    n = points.shape[1]
    order, at, cuts = np.arange(n), list[int](), list[CellCut]()
    waiting: list[tuple[float, int, int, int, NDArray[np.intp], int, Floats, float]] = []

    def look(first: int, last: int, cell: int) -> None:
        found = _best_cut(points[:, order[first:last]], least)
        if found is not None:
            gain, where, within, direction, bound = found
            heapq.heappush(waiting, (-gain, first, last, where, within, cell, direction, bound))

    look(0, n, 0)
    while waiting and len(at) < _CELLS_MAX - 1:
        _, first, last, where, within, cell, direction, bound = heapq.heappop(waiting)
        order[first:last] = order[first:last][within]
        at.append(first + where)
        cuts.append(CellCut(cell, direction, bound))
        # The part above is a new cell, numbered by the cuts so far; the part below keeps its number.
        look(first, first + where, cell)
        look(first + where, last, len(at))
    return order, at, cuts


def _cut_as(points: Floats, least: int, cuts: Sequence[CellCut]) -> tuple[NDArray[np.intp], list[int], list[CellCut]]:
    """Apply given cuts to people, where at least `least` remain on either side; return as `_cut`."""
    order, at, stand = np.arange(points.shape[1]), list[int](), list[CellCut]()
    first, last, called = {0: 0}, {0: points.shape[1]}, {0: 0}
    for number, each in enumerate(cuts, start=1):
        start, end = first[each.cell], last[each.cell]
        inside = order[start:end]
        above = each.direction @ points[:, inside] > each.bound
        where = end - int(np.count_nonzero(above))
        if where - start >= least and end - where >= least:
            order[start:end] = np.concatenate([inside[~above], inside[above]])
            at.append(where)
            stand.append(replace(each, cell=called[each.cell]))
            called[number] = len(at)
        else:  # the cut leaves too few on one side: all go to the other
            where = start if end - where > where - start else end
            called[number] = called[each.cell]
        first[number], last[number], last[each.cell] = where, end, where
    return order, at, stand


def best_count(
    values: Floats, cuts: Cuts, scale: float, offset: float = 0.0, most: int = _CELLS_MAX, stands_for: float = 1.0
) -> tuple[int, float]:
    """Return the number of cells with the least predicted error of a gap, and that error.

    Parameters
    ----------
    values : shape (m, n), of the people that were cut, in their own order.
    scale : of the noise on each count, as from `cells_scale`.
    offset : the mean square distance of the models' means over these people from those over everybody whom a metric
        looks at: the factor by which the variance of these people's N0 enters their sums.
    most : the most cells allowed.
    stands_for : how many people each of these stands for.
    """
    m, n = values.shape
    finest = cuts.starts(cuts.most)
    # Constants cancel in merged cells: sum over i in c of (v_i - mean).
    sums = np.add.reduceat(values[:, cuts.order], finest, axis=1)
    sums -= values.mean(axis=1, keepdims=True) * np.diff(finest, append=n)
    sums *= stands_for
    of_points, squares = cuts.directions.T @ sums, stands_for * cuts.squares
    first = squares[: cuts.directions.shape[1]]
    spread, people = SHARE * (1 - SHARE), round(stands_for * n)
    priors = structures(squares, m, SHARE, people)
    errors = {}
    for count in _counts(min(cuts.most, most)):
        starts = cuts.starts(count)
        merged = np.searchsorted(finest, starts)
        seen, seen_points = (np.add.reduceat(rows, merged, axis=1) for rows in (sums, of_points))
        inside = stands_for * np.diff(starts, append=n)
        of_counts = np.full(count, discrete_variance(scale))
        noise = usual(count) * narrowed(inside, inside, of_counts, SHARE)[1]
        weights = 1 / (spread * inside + noise)
        told, told_of_all = seen_points * np.sqrt(weights), float(((seen**2).sum(axis=0) * weights).sum())
        rest = spread * float(squares.sum() - first.sum()) - spread**2 * (told_of_all - float((told**2).sum()))
        of_size = float(noise.sum())
        variances = [(rest + joint) / m + offset * of_size for joint in variances_told(first, told, priors)]
        errors[count] = predicted_error(variances, of_size, people)
    best = min(errors, key=lambda count: errors[count])
    return best, errors[best]


def usual(terms: int) -> float:
    """Return the variance ratio of Gaussian noise to a sum of Laplace noise with the same median absolute value.

    0.53 for one term, 0.76 for two, nearly 1 for many. Choices are made by such usual errors.
    """
    return 1 - 0.47 / terms


def _counts(most: int) -> list[int]:
    """Return the numbers of cells to try, up to `most`."""
    steps = {round(2 ** (i / 2)) for i in range(2 * math.ceil(math.log2(_CELLS_MAX)) + 1)}
    return sorted({count for count in steps if count <= most} | {most})


def _best_cut(points: Floats, least: int) -> tuple[float, int, NDArray[np.intp], Floats, float] | None:
    """Return the best cut's gain, lower part's size, order, direction and bound; None if no cut gains."""
    n = points.shape[1]
    if n < 2 * least:
        return None
    means = points.mean(axis=1, keepdims=True)
    centred = points - means
    total = float(np.einsum("ij,ij->", centred, centred))
    if total <= 1e-12 * n:
        return None
    direction = np.linalg.eigh(centred @ centred.T)[1][:, -1]
    along = direction @ centred
    within = np.argsort(along, kind="stable")
    before = np.arange(1, n)
    gains = np.cumsum(along[within])[:-1] ** 2 * (n / (before * (n - before)))
    where = least + int(np.argmax(gains[least - 1 : n - least]))
    moved = centred[:, within[:where]].sum(axis=1)
    bound = float(direction @ means[:, 0]) + float(along[within[where - 1]] + along[within[where]]) / 2
    return float(moved @ moved) * n / (where * (n - where)), where, within, direction, bound


STEPS = 127
"""Number of steps from a weight of 0 to the largest: each fits in one byte."""

PARTS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
"""Parts of epsilon that a sum may take."""

CROWDS = 8
"""A crowd is one part in this many of the people, or the least people of a cell."""

CORRELATION = 0.22
"""Assumed correlation, a standard deviation, of z with the leading direction, for the choice of what to measure."""

_LEAST = 1e-9
"""Residual, relative to the predictions' range, that counts as rounding."""


@dataclass(frozen=True, eq=False)
class Residual:
    """A weighted sum that is measured.

    Parameters
    ----------
    weights : w times `STEPS`, shape (n,).
    scale : of the noise on w'z: its cost is 1 / scale. `STEPS` times that is a float64 as well.
    error : the noise's contribution to the error of a gap, a standard deviation.
    """

    weights: NDArray[np.int8]
    scale: float
    error: float


Blocks: TypeAlias = Callable[[], Iterable[tuple[slice, Floats]]]
"""Function that yields some people at a time, by position, and their values, shape (m, b)."""


def leading(blocks: Blocks, cell_of: NDArray[np.intp], crowd: int) -> NDArray[np.int8] | None:
    """Return the weights of the leading direction of the cells' residual, times `STEPS`.

    None where there is no residual, or where fewer than `crowd` people have half of the largest weight.

    `blocks`: all n people. `cell_of`: each person's cell, 0 .. cells - 1, shape (n,). `crowd`: the least people with
    half of the largest weight.
    """
    counted = np.bincount(cell_of).astype(np.float64)

    def means(rows: Blocks) -> Floats:
        sums = [[np.bincount(cell_of[people], row, len(counted)) for row in values] for people, values in rows()]
        return np.asarray(np.sum(sums, axis=0) / np.maximum(counted, 1))

    of_cells, ends, products = means(blocks), list[float](), list[Floats]()
    for people, values in blocks():
        left = values - of_cells[:, cell_of[people]]
        products.append(left @ left.T)
        ends += [float(values.min()), float(values.max())]
    direction = np.linalg.eigh(np.sum(products, axis=0))[1][:, -1]
    # The sign of a direction is arbitrary, and may differ between machines.
    direction = direction if direction.sum() >= 0 else -direction
    along = np.concatenate([direction @ (values - of_cells[:, cell_of[people]]) for people, values in blocks()])
    place = len(along) - min(crowd, len(along))
    if not (most := float(np.partition(np.abs(along), place)[place])) > _LEAST * max(1.0, max(ends) - min(ends)):
        return None
    along = np.clip(along, -most, most)
    (of_along,) = means(lambda: [(slice(None), along[np.newaxis])])
    along = along - of_along[cell_of]
    along *= STEPS / np.abs(along).max()
    steps = np.trunc(along + 2.0**-20 * np.sign(along))
    # The remainder to a sum of 0 in each cell goes to the people with the largest rounding errors.
    missing = -np.bincount(cell_of, steps, len(counted))
    for sign in (1, -1):
        off = np.where(np.abs(steps + sign) <= STEPS, sign * (along - steps), -np.inf)
        order = np.lexsort((-off, cell_of))
        place = np.arange(len(order)) - np.concatenate([[0], np.cumsum(counted)[:-1]])[cell_of[order]]
        steps[order[place < np.maximum(sign * missing, 0)[cell_of[order]]]] += sign
    return np.asarray(steps, np.int8) if np.count_nonzero(2 * np.abs(steps) >= STEPS) >= crowd else None


def besides_cells(
    values: Floats, cell_of: NDArray[np.intp], epsilon: float, error: float, crowd: int, stands_for: float = 1.0
) -> tuple[float, Residual | None]:
    """Return the error of a gap that may hide in cells, and the sum to measure besides; None where none pays.

    `values`, `cell_of`, `crowd`: as for `leading`. `epsilon`: of the whole purchase. `error`: expected of a gap from
    the cells, a standard deviation. `stands_for`: how many people each of these stands for.
    """
    weights = leading(lambda: [(slice(None), values)], cell_of, crowd)
    looked_at = leading(lambda: [(slice(None), values)], cell_of, 1) if weights is None else weights
    if looked_at is None:
        return 0.0, None
    w = looked_at / STEPS
    effects = values @ w / float(w @ w)
    of_one = math.sqrt(float((effects**2).mean())) / (SHARE * (1 - SHARE) * len(w) * stands_for)
    hides = of_one * expected(w) * stands_for
    least, found = math.hypot(error, hides), None
    for part in PARTS if weights is not None else ():
        scale = _short(1 / (part * epsilon))
        noise = of_one * math.sqrt(discrete_variance(STEPS * scale)) / STEPS
        if (both := math.hypot(error / (1 - part), noise)) < least:
            least, found = both, Residual(looked_at, scale, noise)
    return hides, found


def _short(scale: float) -> float:
    """Return a scale of 24 bits, so that `STEPS` times it is a float64 as well."""
    mantissa, exponent = math.frexp(scale)
    return math.ldexp(round(mantissa * 2**24), exponent - 24)


def expected(weights: Floats) -> float:
    """Return B, the assumed size of w'z: a standard deviation."""
    return CORRELATION * math.sqrt(SHARE * (1 - SHARE) * len(weights) * float(weights @ weights))
