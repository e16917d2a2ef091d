r"""Test a claim by betting against it (Waudby-Smith and Ramdas 2023); the result may be checked after every session.

Let X and Y indicate an event in a session on a data set and in a session on its neighbour. The claim says P(X) <=
e^epsilon P(Y) + delta, so X - e^epsilon Y - delta has a mean of at most 0. A bettor with wealth 1 stakes a share s >= 0
of the wealth on each pair of sessions:

    wealth *= 1 + s (X - e^epsilon Y - delta),     s (e^epsilon + delta) < 1.

If the claim holds, wealth does not grow on average, whatever stake, event and data sets were chosen from earlier
sessions. So it reaches 1/level with a probability of at most the level (Ville), over all sessions, looks and events
together: a look costs nothing, and the winnings of one event count for the next.

The stake with the fastest growth is about margin / (variance + margin^2). Two limits of Clopper and Pearson each pay
for their own error; a bet pays for the error of the difference, and needs about half the sessions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

_STAKE_MAX = 0.75
"""Largest stake, as a share of the stake that could lose all wealth on one pair of sessions."""

_CAUTION = 0.6
"""Share of the optimal stake that is used, because the estimated rates are slightly optimistic."""

_TOGETHER = 256
"""Pairs of sessions between two updates of the stake."""


@dataclass(frozen=True)
class EventCounts:
    """Number of times that an event happened, or is expected to, in `sessions` sessions on each of two data sets."""

    hits: float
    neighbour_hits: float
    sessions: int

    @classmethod
    def expected(cls, rates: tuple[float, float], sessions: int) -> EventCounts:
        """Return the counts expected at these rates in `sessions` sessions, at least 1."""
        return cls(rates[0] * sessions, rates[1] * sessions, sessions)


@dataclass
class Bets:
    """Bets against a claim of epsilon and delta."""

    epsilon: float
    delta: float
    _bets: list[tuple[float, NDArray[np.int64]]] = field(default_factory=list)

    def place(self, here: NDArray[np.bool_], there: NDArray[np.bool_], counts: EventCounts) -> EventCounts:
        """Bet on an event in fresh sessions; return its counts with these sessions added.

        `here` and `there`, shape (sessions,), indicate the event in each session on the data set and on the neighbour;
        `counts` are the event's counts in earlier sessions.
        """
        for start in range(0, len(here), _TOGETHER):
            x, y = here[start : start + _TOGETHER], there[start : start + _TOGETHER]
            table = np.bincount(2 * x.astype(np.int64) + y, minlength=4)
            rates = counts.hits / counts.sessions, counts.neighbour_hits / counts.sessions
            self._bets.append((stake(*rates, self.epsilon, self.delta), table))
            counts = EventCounts(
                counts.hits + np.count_nonzero(x),
                counts.neighbour_hits + np.count_nonzero(y),
                counts.sessions + len(x),
            )
        return counts

    def log_wealth(self, epsilon: float) -> float:
        """Return the log of the bets' wealth if they had been made against another epsilon; decreasing in epsilon."""
        paid, lost = 1 - self.delta, -math.exp(epsilon) - self.delta
        gains = np.array([-self.delta, lost, paid, lost + 1])
        if not self._bets:
            return 0.0
        shares, tables = (np.array(column) for column in zip(*self._bets, strict=True))
        factors = 1 + np.outer(shares, gains)
        return float(np.sum(tables * np.log(factors))) if factors.min() > 0 else -math.inf

    def bound(self, level: float) -> float:
        """Return a lower bound on epsilon, at least 0, that fails with a probability of at most `level`."""
        enough, low = -math.log(level), 0.0
        high = self.epsilon + 1
        if self.log_wealth(low) < enough:
            return 0.0
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if self.log_wealth(middle) >= enough else (low, middle)
        return low


def stake(rate: float, neighbour_rate: float, epsilon: float, delta: float) -> float:
    """Return the share of wealth to stake on an event with these two rates; 0 if the claim allows the rates."""
    loss = math.exp(epsilon)
    margin = rate - loss * neighbour_rate - delta
    if margin <= 0:
        return 0.0
    variance = rate * (1 - rate) + loss**2 * neighbour_rate * (1 - neighbour_rate)
    return min(_CAUTION * margin / (variance + margin**2), _STAKE_MAX / (loss + delta))
