r"""Guessing from a release and metric queries about the same people, for which one budget is spent.

Who is advantaged has, given the release and all else that is known, the probability p of `developer.release.beliefs`.
With that as a prior each answer is a noisy sum over those who are not, as in the attribute-reveal game, and expectation
propagation (`developer.reveal.decode.ep`) finds the posterior: the binary prior and the law of the noise as they are,
where the linear estimate of least mean square error would take both for Gaussian.

**What is asked.** Statistical parity of models that decide by a coin toss for each person, in one batch. The noise does
not depend on the rows, and a person adds h - mean(h) to an answer: no row lets each person weigh more than one of zeros
and ones, half of each, does. Each answer of m has m times the noise of one alone: how many are asked is the scenario's
choice, or that of `developer.release.searched`.

**How many are disadvantaged**, N0, is what the answers' scale depends on. By the release it is the sum M of 1 - p, with
the standard deviation S of `developer.release.beliefs.Beliefs.spread`; that is what there is to go by with most
mechanisms. ``counts`` computes its answers with a noisy N0', bought with the batch, of which the answers' grid tells
what it was. With noise of variance W it moves the estimate to M + (N0' - M) S^2 / (S^2 + W), which is most of what
queries tell where a release says little: it is the groups' size that the release leaves open there. An answer is, of
groups taken for N0' and n - N0', -c' times the sum of (h - hbar) over the disadvantaged, but for the noise and for
(N0' - N0) (hbar - 1/2), which is put right.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from developer.release.beliefs import SUREST, Beliefs
from developer.reveal.decode.best import LARGEST
from developer.reveal.decode.decoder import Evidence
from developer.reveal.decode.ep import posterior, prior_log_odds
from developer.reveal.decode.likelihood import counts_size, law_of
from developer.reveal.decode.score import ratios
from developer.reveal.strategies.strategy import Terms
from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.laws.counts import laplace_scales

ANSWERED_BY = ("laplace", "conceal", "cauchy", "counts")
"""The mechanisms whose answers are read here: their noise has a law that needs no delta."""

_FARTHEST = 10.0
"""Standard deviations beyond which a noisy size was misread."""


def tossed(people: int, queries: int, seed: int | np.random.Generator) -> NDArray[np.float64]:
    """Toss a coin for each person and query: shape (queries, people)."""
    return np.random.default_rng(seed).integers(0, 2, (queries, people)).astype(np.float64)


def from_mixture(
    asked: game.QueryTerms, believed: Beliefs, predictions: NDArray[np.float64], gaps: NDArray[np.float64]
) -> NDArray[np.uint8]:
    """Guess who is advantaged, (people,).

    Parameters
    ----------
    believed : of everything but the answers.
    predictions, gaps : ndarray, shapes (queries, people) and (queries,)
        One batch, for which all of ``asked.epsilon`` was spent.
    """
    queries, people = predictions.shape
    terms = Terms(mechanism=asked.mechanism, first=True)
    p = np.clip(1 - believed.probability, SUREST, 1 - SUREST)
    n0 = _whole(p.sum(), people)
    if asked.mechanism == "counts":
        n0, gaps = _with_size(asked, believed.spread, float(p.sum()), predictions, gaps)
    law = law_of(terms, n0=n0, n1=people - n0, queries=queries, epsilon=asked.epsilon)
    evidence = Evidence(predictions, gaps, n0, people - n0, law, np.log(p / (1 - p)) - np.log(n0 / (people - n0)))
    if queries**2 * people > LARGEST:
        log_odds = prior_log_odds(evidence) + ratios(evidence)
    else:
        log_odds = posterior(evidence).log_odds
    return (log_odds < 0).astype(np.uint8)


def _with_size(
    asked: game.QueryTerms,
    spread: float,
    mean: float,
    predictions: NDArray[np.float64],
    gaps: NDArray[np.float64],
) -> tuple[int, NDArray[np.float64]]:
    """Estimate N0, and say what answers of ``counts`` would be of groups of these sizes."""
    queries, people = predictions.shape
    scales = laplace_scales(queries, asked.epsilon)
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
    """Round the size of a group; neither group is empty."""
    return int(np.clip(np.rint(size), 1, people - 1))
