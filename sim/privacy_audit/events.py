"""Learn an event that tells two neighbours apart.

Nothing here has to be right: an event is tested on sessions that were not used to find it, so a bad choice costs power
and accuses nobody. An event is "the score is at least a threshold". Scores are log-likelihood ratios: the true one if
densities are known; otherwise ratios estimated from counts, for one number of the transcript, for the difference of
two, for two jointly, for all as if they were independent, and for the whole transcript if it repeats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from fairwall.arrays import Bools, Floats, Ints

Vector = Floats
Score = Callable[[Vector], Vector]

_BINS = 20
_CELLS_A_SIDE = 16
_ATOMS_MAX = 256
_JOINED_MAX = 5
"""Longest transcript that is examined in all pairs of its numbers; longer ones are examined in a few pairs."""
_THRESHOLDS = 48
_SAFETY = 1.0
"""Standard deviations subtracted because the luckiest threshold is chosen."""
_LIMIT = 4.0
"""Approximate width of the limits of Clopper and Pearson, in standard deviations."""


@dataclass(frozen=True, eq=False)
class Event:
    """An event of a session: its score is at least the threshold.

    The score, described by `about`, maps transcripts, shape (count, numbers), to shape (count,). `turned` marks an
    event that is likelier on the second data set of the pair. `promise` is a cautious estimate of how fast a bet
    against the claim wins with the event; or, if none is expected to win, the distance from the claim to the expected
    bound, negative. `rates` are the event's frequencies where it was chosen: on the data set where it is likelier, and
    on the other.
    """

    about: str
    score: Score = field(repr=False)
    threshold: float
    turned: bool
    promise: float
    rates: tuple[float, float]

    def happens(self, transcripts: Vector) -> Bools:
        """Return, for each session, whether the event happened."""
        found: Bools = self._sign * self.score(transcripts) >= self.threshold
        return found

    @property
    def words(self) -> str:
        """Description of the event with its threshold."""
        return f"{self.about} is {'at most' if self.turned else 'at least'} {self.threshold * self._sign:.3g}"

    @property
    def _sign(self) -> int:
        return -1 if self.turned else 1


def learn(first: Vector, second: Vector, known: Score | None, epsilon: float, delta: float) -> Event:
    """Return the event that promises most against a claim of epsilon and delta.

    Half of the transcripts (the same number from each data set) teach scores; the other half choose among them and, if
    known, the true log-likelihood ratio.
    """
    half = len(first) // 2
    best: Event | None = None
    scores = _learned(first[:half], second[:half])
    for about, score in (*scores, *([("the true log-likelihood ratio", known)] if known else [])):
        here, there = score(first[half:]), score(second[half:])
        for turned in (False, True):
            threshold, promise, rates = _choose(-there if turned else here, -here if turned else there, epsilon, delta)
            if best is None or promise > best.promise:
                best = Event(about, score, threshold, turned, promise, rates)
    assert best is not None
    return best


def _choose(here: Vector, there: Vector, epsilon: float, delta: float) -> tuple[float, float, tuple[float, float]]:
    """Return the most promising threshold, its promise, and the rates of scores that reach it, here and there."""
    ordered, others = np.sort(here), np.sort(there)
    # More thresholds where the event is rare: the ratio is largest there.
    ranks = np.unique(np.geomspace(1, len(ordered), _THRESHOLDS).astype(np.int64))
    thresholds = np.unique(ordered[len(ordered) - ranks])
    hits, neighbour_hits = (
        (len(ordered) - np.searchsorted(scores, thresholds)).astype(np.float64) for scores in (ordered, others)
    )
    # Correct for choosing the luckiest threshold: standard deviations, and one more session on the neighbour.
    p = np.maximum(hits - _SAFETY * np.sqrt(hits), 0.0) / len(here)
    q = (neighbour_hits + _SAFETY * np.sqrt(neighbour_hits) + 1) / len(there)
    loss = np.exp(epsilon)
    margin = p - loss * q - delta
    variance = p * (1 - p) + loss**2 * q
    growths = margin**2 / (variance + margin**2)
    # If the claim seems to hold, look for the largest bound.
    low, high = p - _LIMIT * np.sqrt(p / len(here)) - delta, q + _LIMIT * np.sqrt(q / len(there))
    bounds = np.where(low > 0, np.log(np.maximum(low, 1e-300) / high), -1e3)
    promises = np.where(margin > 0, growths, np.minimum(bounds - epsilon, 0.0))
    at = int(np.argmax(promises))
    rates = float(hits[at] / len(here)), float((neighbour_hits[at] + 1) / len(there))
    return float(thresholds[at]), float(promises[at]), rates


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
    # A weighted sum that is equal for two transcripts only if they repeat: repeated transcripts become atoms.
    weights = np.sqrt(np.arange(2.0, length + 2))
    yield "the log-likelihood ratio of the transcript as a whole", _column(lambda x: x @ weights, first, second)


def _column(feature: Score, first: Vector, second: Vector) -> Score:
    """Learn the log-ratio of one number: per value if values repeat, otherwise in bins."""
    here, there = feature(first), feature(second)
    values, counts = np.unique(np.concatenate((here, there)), return_counts=True)
    repeated = counts >= max(4.0, len(here) / 1000)
    atoms = values[repeated]
    if len(atoms) > _ATOMS_MAX:
        atoms = np.sort(atoms[np.argsort(-counts[repeated], kind="stable")[:_ATOMS_MAX]])
    loose = values[~repeated]
    edges = np.unique(np.quantile(loose, np.arange(1, _BINS) / _BINS)) if len(loose) > _BINS else np.empty(0)

    def cell(numbers: Vector) -> Ints:
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

    def cell(x: Vector) -> Ints:
        across = np.searchsorted(columns, x[:, j], side="right")
        return np.searchsorted(rows, x[:, i], side="right") * (len(columns) + 1) + across

    table = _log_ratios(cell(first), cell(second), (len(rows) + 1) * (len(columns) + 1))
    return lambda x: table[cell(x)]


def _log_ratios(here: Ints, there: Ints, cells: int) -> Vector:
    # Half a session more in each cell, so that an empty cell has a finite ratio.
    counts = [np.bincount(x, minlength=cells) + 0.5 for x in (here, there)]
    ratios: Vector = np.log(counts[0] / counts[1])
    return ratios
