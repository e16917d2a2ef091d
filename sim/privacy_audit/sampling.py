"""Find a lower bound on epsilon from sessions alone.

A first draw on every pair of data sets teaches one event per pair. Then come the looks. Each takes the most promising
event, draws fresh sessions, and computes two bounds. Half of the level pays for bets on these sessions (`Bets`), which
continue from look to look; the other half pays for the limits of the look's own counts, each look at its share
(`epsilon_bound`, `share`), because bets are aimed at the claim and say little about an epsilon far from it. The event
is fixed before the sessions are drawn, so one look is one hypothesis, however many pairs, scores, thresholds and
directions were weighed. Afterwards its sessions teach too; the next look has twice as many, and each look keeps the
better third of the pairs and learns on from them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, cast

import numpy as np

from fairwall.arrays import Bools, Ints
from fairwall.laws.studies.binomial import lower_limit, upper_limit
from sim.privacy_audit.events import Event, Score, Vector, learn
from sim.privacy_audit.pairs import NeighbourPair
from sim.privacy_audit.subject import AuditedSession


def epsilon_bound(hits: int, neighbour_hits: int, trials: int, delta: float, level: float) -> float:
    """Return a lower bound on epsilon from one event, at least 0, that fails with a probability of at most `level`.

    The event happened in `hits` of `trials` sessions (at least 1) on a data set, and in `neighbour_hits` of `trials` on
    its neighbour, all independent of how the event was chosen. `delta` is part of the claim. `level` is in (0, 1).

    (epsilon, delta)-privacy says P(E) <= exp(epsilon) P'(E) + delta for every event E. With a lower bound on P(E) and
    an upper bound on P'(E) by Clopper and Pearson (`fairwall.laws.studies.binomial`), each at half the level,

        epsilon >= ln((P_low - delta) / P'_high)     with probability at least 1 - level.
    """
    low = lower_limit(hits, trials, level / 2) - delta
    high = upper_limit(neighbour_hits, trials, level / 2)
    return max(0.0, math.log(low / high)) if low > 0 else 0.0


def reach(trials: int, delta: float, level: float) -> float:
    """Return the largest `epsilon_bound` that `trials` sessions can give: all hits on one side, none on the other."""
    return epsilon_bound(trials, 0, trials, delta, level)


def share(level: float, look: int) -> float:
    """Return the part of the level that look number `look`, from 1, may spend.

    Look k = 1, 2, ... spends level / (k (k+1)); the sum is at most the level for any number of looks. So all bounds of
    an audit hold together with probability at least 1 - level, and the audit may stop at any look.
    """
    return level / (look * (look + 1))


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
    """Bets against a claim of epsilon and delta.

    The result may be checked after every session (Waudby-Smith and Ramdas 2023).

    Let X and Y indicate an event in a session on a data set and in a session on its neighbour. The claim says P(X) <=
    e^epsilon P(Y) + delta, so X - e^epsilon Y - delta has a mean of at most 0. A bettor with wealth 1 stakes a share s
    >= 0 of the wealth on each pair of sessions:

        wealth *= 1 + s (X - e^epsilon Y - delta),     s (e^epsilon + delta) < 1.

    If the claim holds, wealth does not grow on average, whatever stake, event and data sets were chosen from earlier
    sessions. So it reaches 1/level with a probability of at most the level (Ville), over all sessions, looks and events
    together: a look costs nothing, and the winnings of one event count for the next.

    The stake with the fastest growth is about margin / (variance + margin^2). Two limits of Clopper and Pearson each
    pay for their own error; a bet pays for the error of the difference, and needs about half the sessions.
    """

    epsilon: float
    delta: float
    _bets: list[tuple[float, Ints]] = field(default_factory=list)

    def place(self, here: Bools, there: Bools, counts: EventCounts) -> EventCounts:
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


Drawn: TypeAlias = tuple[Vector, Vector]
"""Transcripts on the two data sets of a pair."""

FIRST = 512
"""Sessions of the first draw, on each data set."""

_KEPT = 2
"""Fewest pairs that are kept: the best of a few thousand sessions may be best by luck."""

_SLICE = 2048
"""Sessions drawn on each data set between two checks of the bets."""


@dataclass(frozen=True)
class SampledLoss:
    """A lower bound on epsilon from sampling, and the event that gave it.

    The true epsilon is at least `lower`, unless the family-wise level has failed; `reach` is the largest bound that the
    counts of a look could have given. `looks` bounds were taken, whose shares of the level add up to at most the level,
    from `sessions` sessions in all. `pair` and `event` describe the pair and the event of the best bound; the event
    happened `hits` and `neighbour_hits` times in `trials` sessions of that look on each data set.
    """

    lower: float
    reach: float
    looks: int
    sessions: int
    pair: str
    event: str
    hits: int
    neighbour_hits: int
    trials: int


@dataclass(frozen=True, eq=False)
class _Trail:
    """A pair, its transcripts, and the event learned from them."""

    pair: NeighbourPair
    drawn: Drawn
    event: Event


def look_sizes(samples: int) -> list[int]:
    """Return the sessions of each look on each data set: doubling, while all draws fit into `samples`."""
    sizes: list[int] = []
    drawn = FIRST
    while drawn + (size := FIRST << len(sizes)) <= samples:
        sizes.append(size)
        drawn += size
    return sizes


def lower_bound(
    subject: AuditedSession,
    pairs: Sequence[NeighbourPair],
    level: float,
    samples: int,
    generator: np.random.Generator,
    on_look: Callable[[int, float], None] = lambda _look, _lower: None,
) -> SampledLoss:
    """Return a lower bound on a subject's epsilon at its claimed delta; stop as soon as the bound is above the claim.

    `pairs` has at least one pair of neighbours. `level` is the probability of a bound above the true epsilon, over all
    looks together; `samples` is the most sessions on one data set, at least twice `FIRST`. `on_look` is called after
    each look with its number and the best bound so far.
    """
    claim = subject.claim
    sizes = look_sizes(samples)

    def draw(pair: NeighbourPair, count: int) -> Drawn:
        return subject.sessions(pair.first, count, generator), subject.sessions(pair.second, count, generator)

    def taught(pair: NeighbourPair, drawn: Drawn) -> _Trail:
        def known(transcripts: Vector) -> Vector | None:
            return subject.log_ratio(pair.first, pair.second, transcripts)

        score = None if known(drawn[0][:1]) is None else cast(Score, known)
        return _Trail(pair, drawn, learn(*drawn, score, claim.epsilon, claim.delta))

    trails = [taught(pair, draw(pair, FIRST)) for pair in pairs]
    bets = Bets(claim.epsilon, claim.delta)
    sessions = 2 * FIRST * len(trails)
    best: SampledLoss | None = None
    for look, trials in enumerate(sizes, start=1):
        trails.sort(key=lambda trail: -trail.event.promise)
        del trails[max(_KEPT, (len(trails) + 2) // 3) :]
        leader = trails[0]
        counts, drawn = EventCounts.expected(leader.event.rates, len(leader.drawn[0]) // 4), list[Drawn]()
        hits = neighbour_hits = seen = 0
        while seen < trials and not bets.bound(level / 2) > claim.epsilon:
            drawn.append(draw(leader.pair, min(_SLICE, trials - seen)))
            here, there = (leader.event.happens(transcripts) for transcripts in drawn[-1])
            if leader.event.turned:
                here, there = there, here
            counts = bets.place(here, there, counts)
            hits, neighbour_hits = hits + int(np.count_nonzero(here)), neighbour_hits + int(np.count_nonzero(there))
            seen += len(here)
        sessions += 2 * seen
        lower = bets.bound(level / 2)
        if seen == trials:  # the size was fixed beforehand: these limits need that, bets do not
            counted = epsilon_bound(hits, neighbour_hits, trials, claim.delta, share(level / 2, look))
            lower = max(lower, counted)
        fresh = [(np.concatenate([here for here, _ in drawn]), np.concatenate([there for _, there in drawn]))]
        if best is None or lower > best.lower:
            words = leader.pair.about, leader.event.words
            best = SampledLoss(lower, 0.0, look, sessions, *words, hits, neighbour_hits, seen)
        on_look(look, best.lower)
        if best.lower > claim.epsilon or look == len(sizes):
            break
        others = max(FIRST, trials // 8)
        fresh += [draw(trail.pair, others) for trail in trails[1:]]
        sessions += 2 * others * (len(trails) - 1)
        trails = [taught(trail.pair, _joined(trail.drawn, more)) for trail, more in zip(trails, fresh, strict=True)]
    assert best is not None
    farthest = max(reach(size, claim.delta, share(level / 2, k)) for k, size in enumerate(sizes, start=1))
    return replace(best, reach=farthest, looks=look, sessions=sessions)


def _joined(before: Drawn, after: Drawn) -> Drawn:
    return np.concatenate((before[0], after[0])), np.concatenate((before[1], after[1]))
