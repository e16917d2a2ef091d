r"""Expectation propagation with a binary prior (Minka 2001; Opper and Winther 2005).

**The problem.** With ``v_j = 1/N1 - c z_j`` and sum z = N0, each row h with mean hbar has

    x = -gap / c = (h - hbar) z + error / c,

whatever the sizes. z is 0 or 1 with prior odds N0/N1, times the features' likelihood ratio, and its sum is known: one
more row, of ones, answered exactly.

**The approximation.** A Gaussian, the product of one site for each z_j (precision d_j, shift b_j) and one for each row
(a Gaussian answer y_i with variance V_i). With S = K D^-1 K', K the rows, and B = S + diag(V), the mean is mu0 + D^-1
K' B^-1 (y - K mu0) with mu0 = b/d, and var(z_j) = 1/d_j - (D^-1 K' B^-1 K D^-1)_jj. Leaving out a row's own site gives
w_i = K_i z the cavity variance 1/(B^-1)_ii - V_i and the cavity mean y_i - (B^-1 (y - K mu0))_i / (B^-1)_ii.

**Sites** get the moments of their cavity times the true factor. Of z_j: a coin with log-odds ``prior + (2 mu - 1) / (2
tau)``. Of a row: `likelihood.smeared` at y - mu gives g and h, and hence precision ``h / (1 - h tau)`` and a mean that
moves the cavity's by tau g. Where a distribution is not log-concave (Cauchy) h may be below 0: the site then keeps next
to no precision, and its pull. A Gaussian's row sites are exact from the start.

**Exact answers** have no variance, and rows near a base model are almost parallel. Orthonormal rows of the same span
carry the same information. The N0 likeliest people are a candidate, which is tested on the answers; while it fails, it
is improved by swaps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from developer.reveal.decode import few_sums, lstsq
from developer.reveal.decode.affine import by_singular_values
from developer.reveal.decode.decoder import DecoderInputs
from developer.reveal.decode.likelihood import (
    counts_size,
    cube_rows,
    law_of,
    noisy_attributes,
    noisy_gaps,
    noisy_size_weights,
    size_weights,
    smeared,
    told_by_size,
    with_public_size,
)
from fairwall.arrays import Bools, Floats
from fairwall.laws.mechanisms.table import RESPONSE_FROM
from fairwall.laws.noise.distributions import Cauchy, Gaussian, Laplace, NoiseDistribution, Uniform
from fairwall.laws.noise.linf_ball import CubeNoise

_SIZES_TRIED, _ROUNDS_FOR_SIZES = 5, 20
_NOISY_SIZES_TRIED = 25

if TYPE_CHECKING:
    from developer.reveal.strategies.strategy import PublicTerms

ROUNDS = 100
DAMPING = 0.4
"""Part of a new site that is taken over per round."""

_LEAST = 1e-3
"""Smallest variance of a person's moments, so that people can still change."""

_SOFT = 0.25
"""Variance given to the sum of z under noise: with an exact sum parallel updates overshoot, all to one side."""

_STEADY, _SURE = 1e-2, 15.0
"""Largest final change of log-odds, and the log-odds beyond which larger changes are allowed."""

_NARROW, _WIDE = 1e-10, 1e10
_LARGEST_GAP = 1e6
"""Gaps are clipped here. None is above 1, and noise this large hides everything."""

_LARGEST_SHIFT = 1e60
_REPLAYS = 1e-7
"""Largest root mean square error of a right candidate's answers, in units of the rows' spread."""


def decode(evidence: DecoderInputs) -> Floats:
    """Estimate v from the posterior probabilities of z; without sizes by least squares."""
    if not evidence.n0 or not evidence.n1:
        return lstsq.decode(evidence)
    return decided(evidence, posterior(evidence).log_odds)


def decided(evidence: DecoderInputs, log_odds: Floats) -> Floats:
    """Return v from posterior log-odds, (n,); v itself where exact answers have a candidate that reproduces them."""
    if exact(evidence) and (found := replayed(evidence, log_odds)) is not None:
        return to_v(evidence, found.astype(np.float64))
    return to_v(evidence, even_odds(evidence, log_odds))


def exact(evidence: DecoderInputs) -> bool:
    """Return whether answers carry no noise."""
    return evidence.noise is None or evidence.noise.scale == 0


def to_v(evidence: DecoderInputs, z: Floats) -> Floats:
    """Return v from z, (n,)."""
    return 1 / evidence.n1 - (1 / evidence.n0 + 1 / evidence.n1) * z


def even_odds(evidence: DecoderInputs, log_odds: Floats) -> Floats:
    """Return z at even odds, (n,) in [0, 1], from posterior log-odds."""
    relative = np.clip(log_odds - math.log(evidence.n0 / evidence.n1), -700.0, 700.0)
    z: Floats = 1 / (1 + np.exp(-relative))
    return z


def prior_log_odds(evidence: DecoderInputs) -> Floats:
    """Return the log-odds of z = 1 before any answer, (n,)."""
    odds = math.log(evidence.n0 / evidence.n1)
    return np.full(evidence.rows.shape[1], odds) if evidence.llr is None else odds + evidence.llr


def centred(evidence: DecoderInputs) -> tuple[Floats, Floats]:
    """Return the rows less their means, (m, n), and x, (m,)."""
    H, c = evidence.rows, 1 / evidence.n0 + 1 / evidence.n1
    return H - H.mean(axis=1, keepdims=True), -np.clip(evidence.gaps, -_LARGEST_GAP, _LARGEST_GAP) / c


def rescaled(law: NoiseDistribution, factor: float) -> NoiseDistribution:
    """Return the distribution of `factor` times the noise."""
    if isinstance(law, (Gaussian, Laplace, Cauchy, Uniform, CubeNoise)):
        return replace(law, scale=law.scale * factor)
    return Gaussian(factor * law.median_abs() / Gaussian(1.0).median_abs())


@dataclass(frozen=True, eq=False)
class GaussianBelief:
    """The approximate posterior.

    log_odds : (n,), of z = 1; finite.
    mean, variance : (rows,), of (h - hbar) z of each row given all answers but its own; the last is the sum's row.
    """

    log_odds: Floats
    mean: Floats
    variance: Floats


def posterior(evidence: DecoderInputs, rounds: int = ROUNDS) -> GaussianBelief:
    """Return the posterior after at most `rounds` rounds of expectation propagation; both sizes must be at least 1."""
    H, x = centred(evidence)
    n, c = H.shape[1], 1 / evidence.n0 + 1 / evidence.n1
    K, y = np.vstack([H, np.full(n, 1 / math.sqrt(n))]), np.append(x, evidence.n0 / math.sqrt(n))
    law = None if exact(evidence) else rescaled(evidence.noise or Gaussian(0.0), 1 / c)
    if law is None:
        same = by_singular_values(K, y)
        K, y = same.basis, same.image
    return _propagate(K, y, law, prior_log_odds(evidence), rounds)


def _propagate(K: Floats, y: Floats, law: NoiseDistribution | None, prior: Floats, rounds: int) -> GaussianBelief:
    """Iterate to a fixed point from answers y, (m + 1,), about rows K, (m + 1, n)."""
    # K is orthonormal where `law` is None; else `law` is the error of all answers but the last, which is exact.
    p = 1 / (1 + np.exp(-np.clip(prior, -30, 30)))
    if law is not None:
        # The sum alone changes nobody's odds. Its Gaussian cavity, mean p and variance tau, would lower all by (1/2 -
        # p) / tau, which would dominate where noise hides nearly everything; this compensates.
        share = float(p.mean())
        prior = prior + (0.5 - share) / ((p.size - 1) * share * (1 - share) + _SOFT)
    precision = 1 / (p * (1 - p))
    shift = p * precision
    squares = (K * K).sum(axis=1)
    V = np.full(len(y), _NARROW)
    answers = y.copy()
    adapts = law is not None and not isinstance(law, Gaussian)
    if law is not None and not adapts:
        V[:-1] = law.scale**2
    if law is not None:
        V[-1] = _SOFT / p.size
    site = answers / V
    if adapts and law is not None:
        # Before anybody's site has moved, a row's cavity is the prior itself.
        tau = np.maximum(squares[:-1] * np.mean(p * (1 - p)), _NARROW)
        precision_0, site[:-1] = _row_sites(law, y[:-1], (K @ p)[:-1], tau)
        V[:-1] = 1 / precision_0
        answers = site * V
    log_odds = prior
    for _ in range(rounds):
        spread = K / precision
        B = spread @ K.T
        B[np.diag_indices_from(B)] += V + _NARROW * max(1.0, float(np.trace(B)) / len(B))
        inverse = np.linalg.inv(B)
        mean0 = shift / precision
        residual = inverse @ (answers - K @ mean0)
        own_row = np.diagonal(inverse)
        row_tau, row_mu = np.maximum(1 / own_row - V, _NARROW), answers - residual / own_row
        variance = 1 / precision - np.einsum("ij,ij->j", spread, inverse @ spread)
        variance = np.clip(variance, _NARROW, (1 - 1e-6) / precision)
        tau = 1 / (1 / variance - precision)
        mu = tau * ((mean0 + residual @ spread) / variance - shift)
        new, precision_new, shift_new = _coin_sites(prior, mu, tau)
        moved = np.abs(new - log_odds)
        log_odds = new
        # A large log-odds may still grow; nobody's guess depends on it.
        if np.all((moved < _STEADY) | ((np.abs(new) > _SURE) & (moved < 0.1 * np.abs(new)))):
            break
        precision += DAMPING * (precision_new - precision)
        shift = np.clip(shift + DAMPING * (shift_new - shift), -_LARGEST_SHIFT, _LARGEST_SHIFT)
        if adapts and law is not None:
            row_precision, pull = _row_sites(law, y[:-1], row_mu[:-1], row_tau[:-1])
            site[:-1] = np.clip(site[:-1] + DAMPING * (pull - site[:-1]), -_LARGEST_SHIFT, _LARGEST_SHIFT)
            V[:-1] = 1 / (1 / V[:-1] + DAMPING * (row_precision - 1 / V[:-1]))
            answers = site * V
    return GaussianBelief(log_odds, row_mu, row_tau)


def _coin_sites(prior: Floats, mu: Floats, tau: Floats) -> tuple[Floats, Floats, Floats]:
    """Return people's log-odds, site precisions and shifts, (n,) each, from a coin's moments at cavities."""
    log_odds = prior + np.clip((2 * mu - 1) / (2 * tau), -1e6, 1e6)
    p = 1 / (1 + np.exp(-np.clip(log_odds, -40, 40)))
    own = np.maximum(p * (1 - p), _LEAST)
    precision = np.clip(1 / own - 1 / tau, 1e-3, 1e8)
    # Where the precision is clipped, the site's pull towards p is kept.
    shift = np.where(precision > 1e-3, p / own - mu / tau, p * (precision + 1 / tau) - mu / tau)
    return log_odds, precision, shift


def _row_sites(law: NoiseDistribution, y: Floats, mu: Floats, tau: Floats) -> tuple[Floats, Floats]:
    """Return rows' site precisions and shifts, (m,) each, from answers and cavities."""
    _, g, h = smeared(law, y - mu, tau)
    left = 1 - h * tau
    precision = np.clip(np.where((h > 0) & (left > 0), h / np.maximum(left, 1e-12), 0.0), 1 / _WIDE, 1 / _NARROW)
    # The shift that moves the cavity's mean by tau g at this precision.
    return precision, precision * mu + g * (1 + tau * precision)


def replayed(evidence: DecoderInputs, log_odds: Floats) -> Bools | None:
    """Return N0 people, (n,), who reproduce the exact answers, searched from the likeliest; None without success."""
    equations = by_singular_values(*centred(evidence))
    K, y = equations.basis, equations.image
    z = np.zeros(log_odds.size)
    z[np.argsort(-log_odds, kind="stable")[: evidence.n0]] = 1
    residual = y - K @ z
    for _ in range(2 * evidence.n0 + 1):
        if residual @ residual <= len(y) * _REPLAYS**2:
            return z > 0.5
        # Swap one person in and one out: |r - k_in + k_out|^2 - |r|^2.
        into, out = np.flatnonzero(z == 0), np.flatnonzero(z)
        pull, norm = residual @ K, (K * K).sum(axis=0)
        change = (norm[into] - 2 * pull[into])[:, None] + (norm[out] + 2 * pull[out]) - 2 * K[:, into].T @ K[:, out]
        i, o = np.unravel_index(np.argmin(change), change.shape)
        if change[i, o] >= 0:
            return None
        z[into[i]], z[out[o]] = 1, 0
        residual = y - K @ z
    return None


def settled(
    terms: PublicTerms,
    size_answer: float | None,
    rows: Floats,
    gaps: Floats,
    *,
    size_epsilon: float,
    epsilon: float,
    rng: np.random.Generator | None = None,
) -> DecoderInputs:
    """Return the evidence of answers for which the sizes are uncertain.

    Under additive noise the size query's answer, the spread of the batch's answers and the public range of group shares
    weigh the sizes (`likelihood.size_weights`). A wrong size puts the answers on a wrong scale. So expectations are
    propagated at the likeliest sizes, each row's gap is predicted from the other rows for all sizes, and the sizes are
    weighed again, until they stay. Answers of noisy counts are converted to the public N0, those of randomised response
    to evidence about the noisy attributes.

    terms : the public facts; a public n0 is believed.
    size_answer : to the size query, which accepted one person alone; None only where n0 is public.
    rows, gaps : the batch, (m, n) and (m,).
    size_epsilon, epsilon : most that the size query and the batch may have cost.
    """
    m, n = rows.shape
    batch = {"queries": m, "epsilon": epsilon}
    first_epsilon = epsilon if size_answer is None else size_epsilon
    responds = terms.noise_on == "any" and first_epsilon >= RESPONSE_FROM
    if terms.noise_on == "attributes" or responds:
        if size_answer is None:
            return _replaying(terms, rows, gaps, rng)
        n0, n1, own = noisy_attributes(n, size_answer, gaps, terms.epsilon)
        return DecoderInputs(rows, own, n0, n1, rng=rng)
    if terms.noise_on in ("sums", "any") and not math.isinf(epsilon):
        law = law_of(terms, n0=1, n1=n - 1, **batch)
        n0 = counts_size(n, rows, gaps, (law or Gaussian(0.0)).scale / (1 + 1 / (n - 1)))
        gaps, n0 = with_public_size(terms, rows, gaps, n0)
        return DecoderInputs(rows, gaps, n0, n - n0, law_of(terms, n0=n0, n1=n - n0, **batch), rng=rng)
    if terms.noise_on in ("cube", "directions") and not math.isinf(epsilon):
        own_rows, own, n0 = cube_rows(n, rows, gaps, epsilon)
        if terms.noise_on == "directions":
            # Rows without overlap have nearly a cube's noise; N0 cannot be read from such sums.
            n0 = few_sums.usual_size(n) if terms.n0 is None else terms.n0
        own, n0 = with_public_size(terms, own_rows, own, n0)
        law = law_of(terms, n0=n0, n1=n - n0, queries=max(len(own), 1), epsilon=epsilon)
        return DecoderInputs(own_rows, own, n0, n - n0, law, rng=rng)
    if terms.noise_on == "cells" and not math.isinf(epsilon):
        return replace(few_sums.behind(rows, gaps, epsilon, terms.n0, terms.limit), rng=rng)
    told = told_by_size(terms, size_answer, n, size_epsilon)
    n0, seen = int(np.argmax(size_weights(terms, told, rows, gaps, epsilon))) + 1, set[int]()
    while True:
        evidence = DecoderInputs(rows, gaps, n0, n - n0, law_of(terms, n0=n0, n1=n - n0, **batch), rng=rng)
        if terms.n0 is not None or exact(evidence) or n0 in seen or len(seen) >= _SIZES_TRIED:
            return evidence
        seen.add(n0)
        belief = posterior(evidence, _ROUNDS_FOR_SIZES)
        foretold = told.copy()
        for size in np.flatnonzero(np.isfinite(told)) + 1:
            c = 1 / size + 1 / (n - size)
            law = law_of(terms, n0=int(size), n1=int(n - size), **batch) or Gaussian(0.0)
            gone = -gaps - c * belief.mean[:-1]
            foretold[size - 1] += smeared(law, gone, c * c * belief.variance[:-1])[0].sum()
        n0 = int(np.argmax(foretold)) + 1


def _replaying(terms: PublicTerms, rows: Floats, gaps: Floats, rng: np.random.Generator | None) -> DecoderInputs:
    """Return the evidence of randomised response for a public N0 and an unknown number of noisy zeros."""
    # Of the likeliest numbers, the right one lets some attributes reproduce all answers, given enough answers.
    n, n0 = rows.shape[1], terms.n0
    assert n0 is not None, "else the size query was asked"
    seen = by_singular_values(rows - rows.mean(axis=1, keepdims=True), gaps).image
    weights = noisy_size_weights(n, n0, seen, terms.epsilon)
    tried: list[DecoderInputs] = []
    for ones in (np.argsort(-weights, kind="stable")[:_NOISY_SIZES_TRIED] + 1).tolist():
        own = noisy_gaps(n, ones, gaps, terms.epsilon)
        tried.append(DecoderInputs(rows, own, n - ones, ones, rng=rng))
        if replayed(tried[-1], posterior(tried[-1], _ROUNDS_FOR_SIZES).log_odds) is not None:
            return tried[-1]
    return tried[0]
