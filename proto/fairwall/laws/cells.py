r"""Cells of people with alike predictions: what one release answers a whole batch from.

**Release.** A public partition of the n people into C cells, and T_c, how many of each are disadvantaged, with discrete
Laplace noise, P(k) ~ exp(-|k| rate). A flip changes one T_c by 1, whichever it is, so that all of them together cost
one rate, for any number of cells and of models. N0 is their sum, and the more cells there are the more noise adds up in
it. Releasing it besides, for a part of epsilon, never promised the smaller error where it was tried, epsilon 0.1 to 5:
what cells lose by it is more.

The partition is computed from predictions and labels, and nothing else. If it depended on A, so would which cells there
are, and nothing would be private.

**Answers.** u = X z with z within cells: `fairwall.laws.posterior`, where S has a row of ones for each cell. What cells
cannot tell is how z goes with X within a cell, so that what is lost is the sum of squares of X within cells, times
s(1-s).

**Partition.** People are points, one coordinate for each model: those of X, or of its first `_DIRECTIONS` principal
components, which keep nearly all of the distances where models are alike. Beginning with all people, the cell whose
best cut takes away most of the sum of squares is cut in two: at right angles to its leading principal direction,
where the sum of squares within both parts is least, with at least `least_people` on either side. The order of the
cuts makes partitions into 1, 2, 3, ... cells, each finer than the one before; each cell is an interval of people in one
order.

**How small.** Among k people chance leaves k s(1-s) of variance open, the noise on their count is about 2/epsilon^2. A
cell is cut as long as the first is above the second by as much as among `CELL_MIN` people at epsilon 1: up to there a
cell hides who in it is disadvantaged, while at epsilon 5 the count of one person is next to certain, as epsilon says.

**How many.** More cells have less sum of squares within, and more noise. The number with the least predicted error is
taken, `fairwall.laws.posterior.predicted_error`, which looks at no A either, and counts the variance of the first
components U'X of X X' = U diag(l) U'. Cells share nobody, so that D there is diagonal. Of the other components, where
tau adds little, the variance is taken at tau = 0.

**Tried, and left.** A part of epsilon on coarse cells, and finer ones where groups seem to differ: at best 1.04 times
less error, at a large epsilon many times more. Weighted sums in the span of the models, found by gradient descent, with
noise from one cube, in place of counts: 1.1 to 1.4 times less for scores of ten learners, nothing for decisions, and
several times more for thresholds of one score and for shapes that the prior does not foresee.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fairwall.laws.decimals import least_scale
from fairwall.laws.posterior import SHARE, centred_values, directions_of, predicted_error, structures, variances_told

CELL_MIN = 10
"""The least number of people in a cell that others were cut off from, up to epsilon 1."""

_FEW = 2**14
"""About so many people are cut for all of very many."""

_SEED = 2027
_VARIANCE_MIN = 1e-6
_DIRECTIONS = 32
_CELLS_MAX = 2000


@dataclass(frozen=True, eq=False)
class Cut:
    """A cut of one cell, which is a number of cuts before this one: people on the one side are below a bound."""

    cell: int
    direction: NDArray[np.float64]
    bound: float


@dataclass(frozen=True, eq=False)
class Cuts:
    """Nested partitions of people.

    Parameters
    ----------
    order : ndarray of intp
        The people, by position, so that each cell of each partition is an interval of it, shape (n,).
    at : ndarray of intp
        Where `order` is cut, the most telling cut first; the partition into c cells has the first c - 1 of them.
    squares : ndarray of float64
        l, the eigenvalues of X X' that are not 0, the largest first, shape (r,).
    directions : ndarray of float64
        The first columns of U, shape (m, at most r).
    means : ndarray of float64
        Of each model's predictions about them, shape (m,).
    found : by what they were cut, the most telling cut first.
    """

    order: NDArray[np.intp]
    at: NDArray[np.intp]
    squares: NDArray[np.float64]
    directions: NDArray[np.float64]
    means: NDArray[np.float64]
    found: tuple[Cut, ...]

    @property
    def most(self) -> int:
        """Into how many cells the finest partition cuts."""
        return len(self.at) + 1

    def starts(self, cells: int) -> NDArray[np.intp]:
        """Return where in `order` each of so many cells starts, ascending, shape (cells,)."""
        return np.concatenate([np.zeros(1, np.intp), np.sort(self.at[: cells - 1])])

    def cell_of(self, cells: int) -> NDArray[np.intp]:
        """Return each person's cell, 0 .. cells-1, shape (n,)."""
        return _numbered(self.order, self.at[: cells - 1])

    def cell_of_others(self, values: NDArray[np.float64], cells: int) -> NDArray[np.intp]:
        """Return in which of so many cells other people are, shape (n,), by their predictions, shape (m, n)."""
        points = self.directions.T @ (values - self.means[:, np.newaxis])
        order, at, _ = _cut_as(points, 0, self.found[: cells - 1])
        return _numbered(order, at)


def enlarged(cell_of: NDArray[np.intp], cells: int, least: int) -> NDArray[np.intp]:
    """Put cells of fewer than `least` people together with the next ones, and the last with one before it, shape (n,).

    Cells side by side are of people with alike predictions.
    """
    people, place = np.bincount(cell_of, minlength=cells), np.arange(cells)
    for cell in range(cells):
        if 0 < people[cell] < least:
            before = np.flatnonzero(people[:cell])
            other = cell + 1 if cell + 1 < cells else before[-1] if before.size else cell
            place[place == cell] = other
            people[other], people[cell] = people[other] + people[cell], 0
    return place[cell_of]


def _numbered(order: NDArray[np.intp], at: Sequence[int] | NDArray[np.intp]) -> NDArray[np.intp]:
    """Return each person's cell, of people in an order that is cut at some places, shape (n,)."""
    starts, found = np.sort(np.append(0, at)).astype(np.intp), np.empty(len(order), np.intp)
    found[order] = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(order)))
    return found


def cells_scale(epsilon: float) -> float:
    """Return the scale of the noise on each cell that makes a release epsilon-private: 1 / epsilon, rounded up.

    ValueError for an epsilon that is not finite and above 0.
    """
    if not 0 < epsilon < math.inf:
        raise ValueError("epsilon must be above 0 and finite")
    return least_scale(epsilon)


def least_people(epsilon: float) -> int:
    """Return how many people a cell holds at least that others were cut off from."""
    return math.ceil(CELL_MIN / max(1.0, epsilon) ** 2)


def part_of(people: int, many: int) -> NDArray[np.intp]:
    """Draw about so many people by position, without anything of theirs: public, and always the same."""
    return np.unique(np.random.default_rng(_SEED).integers(0, people, many))


def least_among(least: int, stands_for: float) -> int:
    """Return how many of a part a cell holds at least, each of whom stands for several: `CELL_MIN`, or for as many."""
    return max(min(least, CELL_MIN), math.ceil(least / stands_for))


def discrete_variance(scale: float) -> float:
    """Return the variance of discrete Laplace noise on the integers, P(k) ~ exp(-|k| / scale): 2 r / (1 - r)^2.

    Never below `_VARIANCE_MIN`: what is known for certain could not be weighed.
    """
    return max(2 * math.exp(-1 / scale) / math.expm1(-1 / scale) ** 2, _VARIANCE_MIN)


def narrowed(
    counts: NDArray[np.float64], people: NDArray[np.float64], variances: NDArray[np.float64], share: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Return noisy counts without what noise leads beyond what cells can hold, still right in the mean, and variances.

    A cell has from 0 to k disadvantaged people. Discrete Laplace noise has no memory: where it leads to 0 or below, how
    far beyond 0 has one law, with the mean r/(1-r), r = exp(-1/scale), whatever the count z is; and so above k. So that
    says nothing of z, and its mean stands for it (Rao and Blackwell): -r/(1-r) for all that is at most 0, k + r/(1-r)
    for all that is at least k. The variance 2r/(1-r)^2 is less by that of how far, r/(1-r)^2, as often as it happens,
    (r^z + r^(k-z))/(1+r). Of cells of one person that is half of it: what randomised response has.

    Parameters
    ----------
    counts, people, variances : ndarray of float64
        Of cells, shape (cells,): with noise, k of at least 1, and 2r/(1-r)^2.
    share : the share of disadvantaged people: z is taken to be binomial for the variances.
    """
    # v r^2 - 2(v+1) r + v = 0
    r = variances / (variances + 1 + np.sqrt(2 * variances + 1))
    beyond = r / (1 - r)
    found = np.where(counts <= 0, -beyond, np.where(counts >= people, people + beyond, counts))
    at_ends = ((1 - share + share * r) ** people + (share + (1 - share) * r) ** people) / (1 + r)
    return found, np.maximum(variances - at_ends * r / (1 - r) ** 2, _VARIANCE_MIN)


def cut(values: NDArray[np.float64], least: int = CELL_MIN) -> Cuts:
    """Cut people into up to n / `least` cells of alike values, each of at least so many people.

    There are fewer where everybody in a cell has the same values. Those are m models' predictions for n people, shape
    (m, n), and public; nothing else is looked at.
    """
    n = values.shape[1]
    centred = centred_values(values)
    squares, directions = directions_of(centred @ centred.T)
    points = directions[:, :_DIRECTIONS].T @ centred
    if n <= 2 * _FEW:
        order, at, found = _cut(points, least)
    else:
        # Very many are cut where a public part of them is.
        few = points[:, part_of(n, _FEW)]
        _, _, found = _cut(few, least_among(least, n / few.shape[1]))
        order, at, found = _cut_as(points, least, found)
    return Cuts(order, np.array(at, np.intp), squares, directions[:, :_DIRECTIONS], values.mean(axis=1), tuple(found))


def _cut(points: NDArray[np.float64], least: int) -> tuple[NDArray[np.intp], list[int], list[Cut]]:
    """Cut people, by their points, shape (r, n): their order, where it is cut, and by what."""
    n = points.shape[1]
    order, at, cuts = np.arange(n), list[int](), list[Cut]()
    waiting: list[tuple[float, int, int, int, NDArray[np.intp], int, NDArray[np.float64], float]] = []

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
        cuts.append(Cut(cell, direction, bound))
        # The part above is a cell of its own, by the number of cuts so far; the part below keeps the number.
        look(first, first + where, cell)
        look(first + where, last, len(at))
    return order, at, cuts


def _cut_as(
    points: NDArray[np.float64], least: int, cuts: Sequence[Cut]
) -> tuple[NDArray[np.intp], list[int], list[Cut]]:
    """Cut people as others were, with at least so many people on either side: as `_cut`, by the cuts that can be."""
    order, at, stand = np.arange(points.shape[1]), list[int](), list[Cut]()
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
        else:  # the others were alike where they were cut: all of these are on the one side
            where = start if end - where > where - start else end
            called[number] = called[each.cell]
        first[number], last[number], last[each.cell] = where, end, where
    return order, at, stand


def best_count(
    values: NDArray[np.float64],
    cuts: Cuts,
    scale: float,
    offset: float = 0.0,
    most: int = _CELLS_MAX,
    stands_for: float = 1.0,
) -> tuple[int, float]:
    """Return the number of cells with the least predicted error, and that error, of a gap.

    Parameters
    ----------
    values : ndarray of float64
        Shape (m, n), of the people that were cut, in their own order.
    cuts : how they were cut.
    scale : of the noise on each count, as from `cells_scale`.
    offset : the mean square of how far the models' means over these people are from their means over all whom a metric
        looks at: by so much N0 of these people matters to their sums.
    most : how many cells there may be at most.
    stands_for : how many people each of these stands for.
    """
    m, n = values.shape
    finest = cuts.starts(cuts.most)
    # What a model says of everybody alike goes where cells are put together: sum over i in c of (v_i - mean).
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
    """Return the part of its variance with which Gaussian noise would have the median of a sum of Laplace noise.

    0.53 for one term, 0.76 for two, and nearly 1 for many: what errors usually are, which is what choices are made by.
    """
    return 1 - 0.47 / terms


def _counts(most: int) -> list[int]:
    """Return numbers of cells to try, up to `most`."""
    steps = {round(2 ** (i / 2)) for i in range(2 * math.ceil(math.log2(_CELLS_MAX)) + 1)}
    return sorted({count for count in steps if count <= most} | {most})


def _best_cut(
    points: NDArray[np.float64], least: int
) -> tuple[float, int, NDArray[np.intp], NDArray[np.float64], float] | None:
    """Return what the best cut takes away of the sum of squares, and where it is; None if nothing.

    That is how many come before, in which order, along what direction, and up to where.
    """
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
