"""Learning an event that tells two neighbours apart.

Nothing here has to be right: an event is tested on sessions that were not used to find it, so a bad choice costs power
and accuses nobody. An event is "the score is at least a threshold". Scores are log-likelihood ratios: the true one
where densities are known; else estimated from counts, for one number of the transcript, for the difference of two, for
two jointly, for all of them as if they were independent, and for the transcript as a whole where it repeats itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Score = Callable[[Vector], Vector]

_BINS = 20
_CELLS_A_SIDE = 16
_ATOMS_MAX = 256
_JOINED_MAX = 5
"""Transcripts up to this long are looked at in all pairs of numbers, longer ones in a few."""
_THRESHOLDS = 48


@dataclass(frozen=True, eq=False)
class Event:
    """Something that may happen in a session.

    Parameters
    ----------
    about
        The score in words.
    score
        From transcripts, shape (count, numbers), to scores, shape (count,).
    threshold
        The event is a score of at least this.
    turned
        Whether it is likelier on the second data set of the pair than on the first.
    promise
        A guess at the lower bound on epsilon that the next look gets from it.
    """

    about: str
    score: Score = field(repr=False)
    threshold: float
    turned: bool
    promise: float

    def count(self, transcripts: Vector) -> int:
        """Return in how many of the sessions it happens."""
        return int(np.count_nonzero(self._sign * self.score(transcripts) >= self.threshold))

    @property
    def words(self) -> str:
        """The event with its threshold."""
        return f"{self.about} is {'at most' if self.turned else 'at least'} {self.threshold * self._sign:.3g}"

    @property
    def _sign(self) -> int:
        return -1 if self.turned else 1


def learn(first: Vector, second: Vector, known: Score | None, delta: float, trials: int, deviations: float) -> Event:
    """Return the most promising event.

    Parameters
    ----------
    first, second
        Transcripts on the two data sets, the same number each. One half teaches scores, the other chooses among them.
    known
        The true log-likelihood ratio, if there is one.
    delta
        The delta that is claimed.
    trials
        Sessions of the next look on each of the two data sets.
    deviations
        How many standard deviations the next look's bounds will give away.
    """
    half = len(first) // 2
    best: Event | None = None
    scores = _learned(first[:half], second[:half])
    for about, score in (*scores, *([("the true log-likelihood ratio", known)] if known else [])):
        here, there = score(first[half:]), score(second[half:])
        for turned in (False, True):
            threshold, promise = _choose(
                -there if turned else here, -here if turned else there, delta, trials, deviations
            )
            if best is None or promise > best.promise:
                best = Event(about, score, threshold, turned, promise)
    assert best is not None
    return best


def _choose(here: Vector, there: Vector, delta: float, trials: int, deviations: float) -> tuple[float, float]:
    """Return the threshold that promises the best bound, and the bound."""
    ordered, others = np.sort(here), np.sort(there)
    # More thresholds where the event is rare: the ratio is largest out there.
    ranks = np.unique(np.geomspace(1, len(ordered), _THRESHOLDS).astype(np.int64))
    thresholds = np.unique(ordered[len(ordered) - ranks])
    hits, neighbour_hits = (
        (len(ordered) - np.searchsorted(scores, thresholds)).astype(np.float64) for scores in (ordered, others)
    )
    # Two standard deviations against having chosen the luckiest, then what the next look gives away.
    p = np.maximum(hits - 2 * np.sqrt(hits), 0.0) / len(here)
    q = (neighbour_hits + 2 * np.sqrt(neighbour_hits) + 1) / len(there)
    low = p - deviations * np.sqrt(p / trials) - delta
    high = q + deviations * np.sqrt(q / trials) + deviations**2 / (2 * trials)
    bounds = np.where(low > 0, np.log(np.maximum(low, 1e-300) / high), -np.inf)
    at = int(np.argmax(bounds))
    return float(thresholds[at]), float(bounds[at])


def _learned(first: Vector, second: Vector) -> Iterator[tuple[str, Score]]:
    length = first.shape[1]
    singles = [_column(lambda x, i=i: x[:, i], first, second) for i in range(length)]  # type: ignore[misc]
    for i in range(min(length, _JOINED_MAX)):
        yield f"the log-likelihood ratio of number {i + 1}", singles[i]
    if length == 1:
        return
    yield "the log-likelihood ratio of all numbers", lambda x: np.sum([score(x) for score in singles], axis=0)
    pairs = combinations(range(length), 2) if length <= _JOINED_MAX else ((0, 1), (0, length // 2))
    for i, j in pairs:
        difference = _column(lambda x, i=i, j=j: x[:, j] - x[:, i], first, second)  # type: ignore[misc]
        yield f"the log-likelihood ratio of number {j + 1} minus number {i + 1}", difference
        yield f"the log-likelihood ratio of numbers {i + 1} and {j + 1}", _joint(i, j, first, second)
    # A sum with weights that no two transcripts share by chance: transcripts that repeat themselves become atoms.
    weights = np.sqrt(np.arange(2.0, length + 2))
    yield "the log-likelihood ratio of the transcript as a whole", _column(lambda x: x @ weights, first, second)


def _column(feature: Score, first: Vector, second: Vector) -> Score:
    """Learn the log-ratio of one number: value by value where values repeat themselves, else in bins."""
    here, there = feature(first), feature(second)
    values, counts = np.unique(np.concatenate((here, there)), return_counts=True)
    repeated = counts >= max(4.0, len(here) / 1000)
    atoms = values[repeated]
    if len(atoms) > _ATOMS_MAX:
        atoms = np.sort(atoms[np.argsort(-counts[repeated], kind="stable")[:_ATOMS_MAX]])
    loose = values[~repeated]
    edges = np.unique(np.quantile(loose, np.arange(1, _BINS) / _BINS)) if len(loose) > _BINS else np.empty(0)

    def cell(numbers: Vector) -> NDArray[np.int64]:
        cells = np.searchsorted(edges, numbers).astype(np.int64)
        if len(atoms):
            at = np.minimum(np.searchsorted(atoms, numbers), len(atoms) - 1)
            cells = np.where(atoms[at] == numbers, len(edges) + 1 + at, cells)
        return cells

    table = _log_ratios(cell(here), cell(there), len(edges) + 1 + len(atoms))
    return lambda x: table[cell(feature(x))]


def _joint(i: int, j: int, first: Vector, second: Vector) -> Score:
    """Learn the log-ratio of two numbers in the cells of a lattice."""
    both = np.concatenate((first, second))
    levels = np.arange(1, _CELLS_A_SIDE) / _CELLS_A_SIDE
    rows, columns = (np.unique(np.quantile(both[:, k], levels)) for k in (i, j))

    def cell(x: Vector) -> NDArray[np.int64]:
        across = np.searchsorted(columns, x[:, j], side="right")
        return np.searchsorted(rows, x[:, i], side="right") * (len(columns) + 1) + across

    table = _log_ratios(cell(first), cell(second), (len(rows) + 1) * (len(columns) + 1))
    return lambda x: table[cell(x)]


def _log_ratios(here: NDArray[np.int64], there: NDArray[np.int64], cells: int) -> Vector:
    # Half a session more in each cell, so that an empty one is no certainty.
    counts = [np.bincount(x, minlength=cells) + 0.5 for x in (here, there)]
    ratios: Vector = np.log(counts[0] / counts[1])
    return ratios
