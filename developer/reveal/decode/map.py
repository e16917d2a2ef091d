r"""The likeliest attributes, by swaps.

Given N0, the posterior of who the disadvantaged are is proportional to the product of the answers' densities at the
gaps that they would have, times exp(sum of the features' log-likelihood ratios over them). Letting one person in and
another one out keeps N0 and moves row i by ``k_i,in - k_i,out``. We take the best of all N0 N1 swaps until none
improves, from several starts: the likeliest of `ep`, those of `score`, and random ones. With few possible sets all are
tried, which is exact.

The likeliest set is no good guess where noise hides much: who is right most often guesses from posterior
probabilities (`ep`, `mcmc`). It is what fits best.
"""

import itertools
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from developer.reveal.decode import lstsq, score
from developer.reveal.decode.decoder import Evidence
from developer.reveal.decode.ep import centred, exact, posterior, prior_log_odds, rescaled, to_v
from fairwall.laws.noise import Gaussian

ENUMERATED = 20_000
"""Up to so many sets all are tried."""

_RANDOM_STARTS = 2
_SWAPS = 2_000_000
"""Swaps looked at in one step: more are sampled."""

_EXACT = 1e-6
"""Exact answers are taken to have an error of this size, in people."""

LogDensity = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def decode(evidence: Evidence) -> NDArray[np.float64]:
    """Estimate v as that of the likeliest set of N0 people, (n,).

    Parameters
    ----------
    evidence : without sizes this is least squares.
    """
    if not evidence.n0 or not evidence.n1:
        return lstsq.decode(evidence)
    H, x = centred(evidence)
    n, n0 = H.shape[1], min(evidence.n0, H.shape[1] - 1)
    log_density, prior = density(evidence), prior_log_odds(evidence)
    if math.comb(n, n0) <= ENUMERATED:
        sets = np.array(list(itertools.combinations(range(n), n0)))
        residuals = x - H[:, sets].sum(axis=2).T
        found = log_density(residuals).sum(axis=1) + prior[sets].sum(axis=1)
        best = sets[int(np.argmax(found))]
        return to_v(evidence, (np.bincount(best, minlength=n) > 0).astype(np.float64))
    rng = evidence.rng or np.random.default_rng(0)
    orders = [posterior(evidence).log_odds, prior + score.ratios(evidence)]
    orders += list(rng.random((_RANDOM_STARTS, n)))
    climbed = [_climb(H, x, n0, order, log_density, prior, rng) for order in orders]
    return to_v(evidence, max(climbed, key=lambda pair: pair[0])[1])


def density(evidence: Evidence, least: float = _EXACT) -> LogDensity:
    """Give the log-density of x's error; for exact answers a narrow Gaussian."""
    if exact(evidence) or evidence.noise is None:
        return Gaussian(least).log_density
    law = rescaled(evidence.noise, evidence.n0 * evidence.n1 / (evidence.n0 + evidence.n1))

    def log_density(error: NDArray[np.float64]) -> NDArray[np.float64]:
        # Impossible errors, of rounding for instance, must still be comparable.
        found = law.log_density(error)
        return np.where(np.isfinite(found), found, -1e4 - np.minimum(np.abs(error) / law.scale, 1e9))

    return log_density


def _climb(
    H: NDArray[np.float64],
    x: NDArray[np.float64],
    n0: int,
    order: NDArray[np.float64],
    log_density: LogDensity,
    prior: NDArray[np.float64],
    rng: np.random.Generator,
) -> tuple[float, NDArray[np.float64]]:
    z = np.zeros(order.size)
    z[np.argsort(-order, kind="stable")[:n0]] = 1
    value = float(log_density(x - H @ z).sum() + prior @ z)
    for _ in range(10 * n0 + 10):
        into, out = np.flatnonzero(z == 0), np.flatnonzero(z)
        most = max(1, _SWAPS // (len(x) * out.size))
        if into.size > most:
            into = rng.choice(into, most, replace=False)
        residual = x - H @ z
        moved = residual[:, None, None] - H[:, into, None] + H[:, None, out]
        values = log_density(moved).sum(axis=0) + (prior @ z + prior[into][:, None] - prior[out])
        i, o = np.unravel_index(int(np.argmax(values)), values.shape)
        if values[i, o] <= value + 1e-9:
            break
        z[into[i]], z[out[o]] = 1, 0
        value = float(log_density(x - H @ z).sum() + prior @ z)
    return value, z
