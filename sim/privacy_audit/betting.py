r"""A test of a claim by betting against it (Waudby-Smith and Ramdas 2023), which may be looked at after every session.

Let X and Y say whether an event happens in a session on a data set, and in one on its neighbour. By the claim
P(X) <= e^epsilon P(Y) + delta, so that X - e^epsilon Y - delta is at most 0 on average. Who starts with 1 and stakes
a share s >= 0 of what there is on each pair of sessions,

    wealth *= 1 + s (X - e^epsilon Y - delta),     s (e^epsilon + delta) < 1,

does not get richer on average if the claim holds, whatever stake, event and pair of data sets were chosen from the
sessions before. So wealth of 1/level is reached with a probability of at most the level (Ville), over all sessions,
looks and events together: no part of the level is spent on looking, and what one event has won counts for the next.

The stake that lets wealth grow fastest is about margin / (variance + margin^2). Of the two limits of Clopper and
Pearson each pays for its own error; one bet pays for the error of the difference, and needs about half the sessions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

_STAKE_MAX = 0.75
"""Of what would lose everything at once."""

_CAUTION = 0.6
"""Of the stake that would be best if the rates were known: what is learned of them is a little too good."""

_TOGETHER = 256
"""Pairs of sessions between two looks at the stake."""


@dataclass(frozen=True)
class Counts:
    """How often an event happened, or is expected to have, in how many sessions on each of two data sets."""

    hits: float
    neighbour_hits: float
    sessions: int

    @classmethod
    def expected(cls, rates: tuple[float, float], sessions: int) -> Counts:
        """Return what rates come to in so many sessions, at least 1."""
        return cls(rates[0] * sessions, rates[1] * sessions, sessions)


@dataclass
class Bets:
    """Bets against a claim of (epsilon, delta)-privacy."""

    epsilon: float
    delta: float
    _bets: list[tuple[float, NDArray[np.int64]]] = field(default_factory=list)

    def place(self, here: NDArray[np.bool_], there: NDArray[np.bool_], counts: Counts) -> Counts:
        """Bet on an event in fresh sessions, and return its counts with these sessions.

        Parameters
        ----------
        here, there : whether it happened in each session on the data set, and on the neighbour; shape (sessions,).
        counts : what is known of it from sessions before these.
        """
        for start in range(0, len(here), _TOGETHER):
            x, y = here[start : start + _TOGETHER], there[start : start + _TOGETHER]
            table = np.bincount(2 * x.astype(np.int64) + y, minlength=4)
            rates = counts.hits / counts.sessions, counts.neighbour_hits / counts.sessions
            self._bets.append((stake(*rates, self.epsilon, self.delta), table))
            counts = Counts(
                counts.hits + np.count_nonzero(x),
                counts.neighbour_hits + np.count_nonzero(y),
                counts.sessions + len(x),
            )
        return counts

    def log_wealth(self, epsilon: float) -> float:
        """Return the logarithm of what the bets would have come to against another epsilon; falls in it."""
        paid, lost = 1 - self.delta, -math.exp(epsilon) - self.delta
        gains = np.array([-self.delta, lost, paid, lost + 1])
        if not self._bets:
            return 0.0
        shares, tables = (np.array(column) for column in zip(*self._bets, strict=True))
        factors = 1 + np.outer(shares, gains)
        return float(np.sum(tables * np.log(factors))) if factors.min() > 0 else -math.inf

    def bound(self, level: float) -> float:
        """Return a lower bound on epsilon, at least 0, that fails at most at this level."""
        enough, low = -math.log(level), 0.0
        high = self.epsilon + 1
        if self.log_wealth(low) < enough:
            return 0.0
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if self.log_wealth(middle) >= enough else (low, middle)
        return low


def stake(rate: float, neighbour_rate: float, epsilon: float, delta: float) -> float:
    """Return the share to stake on an event that happens so often here and there; 0 where the claim allows that."""
    loss = math.exp(epsilon)
    margin = rate - loss * neighbour_rate - delta
    if margin <= 0:
        return 0.0
    variance = rate * (1 - rate) + loss**2 * neighbour_rate * (1 - neighbour_rate)
    return min(_CAUTION * margin / (variance + margin**2), _STAKE_MAX / (loss + delta))
