"""Search for the number of queries beside a release, by simulation on people drawn from the release's posterior.

Each answer of m has m times the noise of one alone, so many queries may reveal less than few. Each person is drawn by
the believed probability, with all odds shifted alike by the uncertainty of the share. Answers come from the mechanism's
public distribution, and are read by the real decoder. The best of all, a half, a quarter and so on is changed in ever
smaller steps while the score rises; the result is used if it also beats all queries on fresh draws, by a standard
error.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache

import numpy as np

from developer.climbing import climbed
from developer.release.beliefs import SUREST, AttributeGuesses
from developer.release.mixture import from_mixture, tossed
from developer.reveal.decode.likelihood import law_of
from developer.reveal.strategies.strategy import PublicTerms
from fairwall.arrays import Bools, Floats
from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.laws.noise.count_noise import laplace_scales

_TRIED, _FINAL = 5_000, 10_000
"""People drawn, over all games together, to score a number of queries, and to compare the result with all queries."""

_SHIFTED = 1.0
"""Largest standard deviation of the shift of log-odds: of undecided people, the share is then mostly 27% to 73%."""

_GRID = 20
"""Sums of counts lie on a grid 2^-20 as fine as their noise, which reveals the size they were computed with."""


def found(query_terms: game.QueryTerms, believed: AttributeGuesses) -> int:
    """Return the best number of queries, at most ``query_terms.queries``."""

    @cache
    def score(queries: int) -> float:
        return float(_right(queries, query_terms, believed, _TRIED, seed=0).mean())

    def near(queries: int, step: float) -> Iterator[int]:
        yield max(math.floor(queries / step), 1)
        yield min(math.ceil(queries * step), query_terms.queries)

    every = int(query_terms.queries)
    halved = [every >> times for times in range(every.bit_length())]
    top = climbed(max(halved, key=score), near, score)
    gain = np.subtract(*(_right(queries, query_terms, believed, _FINAL, seed=1) for queries in (top, every)))
    return top if gain.mean() > gain.std() / math.sqrt(len(gain)) else every


def _right(queries: int, query_terms: game.QueryTerms, believed: AttributeGuesses, drawn: int, seed: int) -> Floats:
    """Return the share of drawn people guessed right with `queries` queries, (games,)."""
    p = np.clip(1 - believed.probability, SUREST, 1 - SUREST)
    own = float((p * (1 - p)).sum())
    shift = min(math.sqrt(max(believed.spread**2 - own, 0.0)) / own, _SHIFTED)
    right = []
    for number in range(math.ceil(drawn / len(p))):
        rng = np.random.default_rng([seed, number])
        z = rng.random(len(p)) < 1 / (1 + (1 - p) / p * math.exp(shift * rng.standard_normal()))
        rows = tossed(len(p), queries, rng)
        guess = from_mixture(query_terms, believed, rows, _answered(query_terms, z, rows, rng))
        right.append(float((guess == ~z).mean()))
    return np.array(right)


def _answered(query_terms: game.QueryTerms, z: Bools, rows: Floats, rng: np.random.Generator) -> Floats:
    """Return the mechanism's answers to a batch, (queries,), if those of z, (people,), are disadvantaged."""
    queries, n = rows.shape
    n0 = int(np.clip(z.sum(), 1, n - 1))
    if query_terms.mechanism != "counts":
        law = law_of(
            PublicTerms(mechanism=query_terms.mechanism, first=True),
            n0=n0,
            n1=n - n0,
            queries=queries,
            epsilon=query_terms.epsilon,
        )
        assert law is not None, "it is noisy"
        return np.asarray(rows @ np.where(z, -1 / n0, 1 / (n - n0)) + law.sample(rng, queries))
    scales = laplace_scales(queries, query_terms.epsilon)
    step = 2.0 ** (math.frexp(scales.sums)[1] - _GRID)
    size = int(np.clip(np.rint(n0 + rng.laplace(0.0, scales.size)), 1, n - 1))
    sums = (rows[:, z] - 0.5).sum(axis=1) + rng.laplace(0.0, scales.sums, queries)
    sums = np.rint(sums / step) * step + size / 2
    return np.asarray(rows.sum(axis=1) / (n - size) - (1 / size + 1 / (n - size)) * sums)
