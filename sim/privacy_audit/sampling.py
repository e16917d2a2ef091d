"""Find a lower bound on epsilon from sessions alone.

A first draw on every pair of data sets teaches one event per pair. Then come the looks. Each takes the most promising
event, draws fresh sessions, and computes two bounds. Half of the level pays for bets on these sessions (`betting`),
which continue from look to look; the other half pays for the limits of the look's own counts, each look at its share
(`intervals`), because bets are aimed at the claim and say little about an epsilon far from it. The event is fixed
before the sessions are drawn, so one look is one hypothesis, however many pairs, scores, thresholds and directions were
weighed. Afterwards its sessions teach too; the next look has twice as many, and each look keeps the better third of the
pairs and learns on from them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, cast

import numpy as np

from sim.privacy_audit.betting import Bets, EventCounts
from sim.privacy_audit.events import Event, Score, Vector, learn
from sim.privacy_audit.intervals import epsilon_bound, reach, share
from sim.privacy_audit.pairs import NeighbourPair
from sim.privacy_audit.subject import AuditedSession

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
