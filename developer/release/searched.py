"""Search for how many questions to ask beside a release, by simulation on people of whom it says what it does.

Each answer of m has m times the noise of one alone, so that many questions may tell less than few. People are drawn as
the release leaves them open: each by the probability that is believed, and, for how many they are, all of them at odds
that are shifted alike, by what is unsure of the share. They are answered by the public law of the mechanism, and read
by what reads the answers. Of all, a half, a quarter and so on the best is changed in ever smaller steps while that
tells more; what is found is asked if it tells more on fresh draws, too, by a standard error.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from developer.climbing import climbed
from developer.release.beliefs import SUREST, Beliefs
from developer.release.mixture import from_mixture, tossed
from developer.reveal.decode.likelihood import law_of
from developer.reveal.strategies.strategy import Terms
from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.laws.counts import laplace_scales

_TRIED, _FINAL = 5_000, 10_000
"""On how many drawn people, of all games together, a number is tried, and what was found is held against all."""

_SHIFTED = 1.0
"""The largest deviation of the odds' shift, a logarithm: of who may be anybody, the share is 27% to 73% mostly."""

_GRID = 20
"""Sums of counts lie on a grid 2^-20 as fine as their noise, by which it is found out what size they go with."""


def found(asked: game.QueryTerms, believed: Beliefs) -> int:
    """Say how many questions to ask, of at most ``asked.queries``."""

    @cache
    def score(queries: int) -> float:
        return float(_right(queries, asked, believed, _TRIED, seed=0).mean())

    def near(queries: int, step: float) -> Iterator[int]:
        yield max(math.floor(queries / step), 1)
        yield min(math.ceil(queries * step), asked.queries)

    every = int(asked.queries)
    halved = [every >> times for times in range(every.bit_length())]
    top = climbed(max(halved, key=score), near, score)
    gain = np.subtract(*(_right(queries, asked, believed, _FINAL, seed=1) for queries in (top, every)))
    return top if gain.mean() > gain.std() / math.sqrt(len(gain)) else every


def _right(queries: int, asked: game.QueryTerms, believed: Beliefs, drawn: int, seed: int) -> NDArray[np.float64]:
    """Ask so many questions about drawn people: the share of them that is guessed right, (games,)."""
    p = np.clip(1 - believed.probability, SUREST, 1 - SUREST)
    own = float((p * (1 - p)).sum())
    shift = min(math.sqrt(max(believed.spread**2 - own, 0.0)) / own, _SHIFTED)
    right = []
    for number in range(math.ceil(drawn / len(p))):
        rng = np.random.default_rng([seed, number])
        z = rng.random(len(p)) < 1 / (1 + (1 - p) / p * math.exp(shift * rng.standard_normal()))
        rows = tossed(len(p), queries, rng)
        guess = from_mixture(asked, believed, rows, _answered(asked, z, rows, rng))
        right.append(float((guess == ~z).mean()))
    return np.array(right)


def _answered(
    asked: game.QueryTerms, z: NDArray[np.bool_], rows: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Answer a batch, (queries,), as the mechanism does if those of z, (people,), are disadvantaged."""
    queries, n = rows.shape
    n0 = int(np.clip(z.sum(), 1, n - 1))
    if asked.mechanism != "counts":
        law = law_of(
            Terms(mechanism=asked.mechanism, first=True), n0=n0, n1=n - n0, queries=queries, epsilon=asked.epsilon
        )
        assert law is not None, "it is noisy"
        return np.asarray(rows @ np.where(z, -1 / n0, 1 / (n - n0)) + law.sample(rng, queries))
    scales = laplace_scales(queries, asked.epsilon)
    step = 2.0 ** (math.frexp(scales.sums)[1] - _GRID)
    size = int(np.clip(np.rint(n0 + rng.laplace(0.0, scales.size)), 1, n - 1))
    sums = (rows[:, z] - 0.5).sum(axis=1) + rng.laplace(0.0, scales.sums, queries)
    sums = np.rint(sums / step) * step + size / 2
    return np.asarray(rows.sum(axis=1) / (n - size) - (1 / size + 1 / (n - size)) * sums)
