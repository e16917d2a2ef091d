r"""Guesses from a release and metric queries about the same people, which share one budget.

Given the release and all other knowledge, each person is advantaged with the probability p of
`developer.release.beliefs`. With that as a prior each answer is a noisy sum over the disadvantaged, as in the
attribute-reveal game, and expectation propagation (`developer.reveal.decode.ep`) finds the posterior: with the exact
binary prior and noise distribution, where the linear estimate of least mean square error would take both for Gaussian.

**Queries.** Statistical parity of models that decide by a coin toss for each person, in one batch. The noise does not
depend on the rows, and a person adds h - mean(h) to an answer: in no row does each person weigh more than in one of
zeros and ones, half of each. Each answer of m has m times the noise of one alone: m is the scenario's choice, or that
of `developer.release.searched`.

**The number of disadvantaged**, N0, sets the answers' scale. By the release it is the sum M of 1 - p, with the
standard deviation S of `developer.release.beliefs.AttributeGuesses.spread`; most mechanisms reveal no more.
``counts`` computes its answers with a noisy N0', bought with the batch, which the answers' grid reveals. With noise
of variance W it moves the estimate to M + (N0' - M) S^2 / (S^2 + W), which is the largest contribution of the queries
where a release is weak, since such a release leaves the groups' size open. An answer is, for groups of sizes N0' and
n - N0', -c' times the sum of (h - hbar) over the disadvantaged, but for the noise and for (N0' - N0) (hbar - 1/2),
which is corrected.
"""

from __future__ import annotations

import numpy as np

from developer.release.beliefs import SUREST, AttributeGuesses
from developer.reveal.decode.best import LARGEST
from developer.reveal.decode.decoder import DecoderInputs
from developer.reveal.decode.ep import posterior, prior_log_odds
from developer.reveal.decode.likelihood import counts_size, law_of
from developer.reveal.decode.score import ratios
from developer.reveal.strategies.strategy import PublicTerms
from fairwall.arrays import Bytes, Floats
from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.laws.noise.count_noise import laplace_scales

ANSWERED_BY = ("laplace", "conceal", "cauchy", "counts")
"""The mechanisms whose answers are read here: their noise distribution needs no delta."""

_FARTHEST = 10.0
"""Standard deviations beyond which a noisy size was misread."""


def tossed(people: int, queries: int, seed: int | np.random.Generator) -> Floats:
    """Return a coin toss for each person and query: shape (queries, people)."""
    return np.random.default_rng(seed).integers(0, 2, (queries, people)).astype(np.float64)


def from_mixture(query_terms: game.QueryTerms, believed: AttributeGuesses, predictions: Floats, gaps: Floats) -> Bytes:
    """Return guesses of who is advantaged, (people,).

    The batch of predictions, (queries, people), and gaps, (queries,), spent all of ``query_terms.epsilon``.
    """
    queries, people = predictions.shape
    terms = PublicTerms(mechanism=query_terms.mechanism, first=True)
    p = np.clip(1 - believed.probability, SUREST, 1 - SUREST)
    n0 = _whole(p.sum(), people)
    if query_terms.mechanism == "counts":
        n0, gaps = _with_size(query_terms, believed.spread, float(p.sum()), predictions, gaps)
    law = law_of(terms, n0=n0, n1=people - n0, queries=queries, epsilon=query_terms.epsilon)
    evidence = DecoderInputs(predictions, gaps, n0, people - n0, law, np.log(p / (1 - p)) - np.log(n0 / (people - n0)))
    if queries**2 * people > LARGEST:
        log_odds = prior_log_odds(evidence) + ratios(evidence)
    else:
        log_odds = posterior(evidence).log_odds
    return (log_odds < 0).astype(np.uint8)


def _with_size(
    query_terms: game.QueryTerms, spread: float, mean: float, predictions: Floats, gaps: Floats
) -> tuple[int, Floats]:
    """Return an estimate of N0, and the answers of ``counts`` converted to groups of these sizes."""
    queries, people = predictions.shape
    scales = laplace_scales(queries, query_terms.epsilon)
    noisy = counts_size(people, predictions, gaps, scales.sums)
    trust = 1 / (1 + 2 * (scales.size / spread) ** 2)
    # Few answers may be read as another size; none is far from what the release and its own noise allow.
    if abs(noisy - mean) > _FARTHEST * np.hypot(spread, np.sqrt(2) * scales.size):
        trust = 0.0
    n0 = _whole(mean + trust * (noisy - mean), people)
    before, after = (1 / size + 1 / (people - size) for size in (noisy, n0))
    sums = -gaps / before + (noisy - n0) * (predictions.mean(axis=1) - 0.5)
    return n0, -after * sums


def _whole(size: float, people: int) -> int:
    """Return a group's size as a whole number; neither group is empty."""
    return int(np.clip(np.rint(size), 1, people - 1))
