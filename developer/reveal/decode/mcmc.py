r"""Posterior probabilities by sampling: parallel tempering over the sets of N0 people.

A chain's state is a set of N0 people. A step removes a random member and adds one of the people then outside, each with
the probability that the posterior, to the power T, gives the resulting set (a Gibbs step: the chain converges to the
posterior to the power T). Where there is little noise the posterior is rugged, and a chain at T = 1 stays near the
first set it reaches. So each ladder has chains at several T, from `_FLATTEST`, at which the landscape is flat enough to
walk, to 1; neighbours on a ladder exchange their sets with probability min(1, exp((T' - T) * (value - value'))), which
preserves their distributions (Geyer 1991). Memberships at T = 1 are counted after the first third of the steps.

Where a row has two values, as with coin tosses, each of n people changes its residual to one of two numbers, and all n
are weighed by a product of matrices.
"""

from collections.abc import Callable

import numpy as np

from developer.reveal.decode import lstsq
from developer.reveal.decode.decoder import DecoderInputs
from developer.reveal.decode.ep import centred, decided, exact, posterior, prior_log_odds, rescaled
from fairwall.arrays import Floats
from fairwall.laws.noise.distributions import Gaussian

LADDERS, RUNGS = 4, 8
STEPS, LEAST_STEPS = 5000, 500
WORK = 8e7
"""Most log-densities, or people weighed where rows have two values, computed in all steps: a second or so."""

_FLATTEST = 0.1
_BETWEEN_EXCHANGES = 10
_EXACT = 0.1
"""Error assumed for exact answers, in people; with a smaller one chains hardly move."""

Densities = Callable[[Floats], Floats]


def decode(evidence: DecoderInputs) -> Floats:
    """Estimate v from the sampled posterior probabilities (seed 0 by default); without sizes by least squares."""
    if not evidence.n0 or not evidence.n1:
        return lstsq.decode(evidence)
    # Half a count each way, so that nobody is certain.
    share = (marginals(evidence) * STEPS + 0.5) / (STEPS + 1)
    return decided(evidence, np.log(share) - np.log1p(-share))


def marginals(evidence: DecoderInputs) -> Floats:
    """Return the frequency at T = 1 with which each person was disadvantaged, (n,), in [0, 1]."""
    H, x = centred(evidence)
    n, n0 = H.shape[1], min(evidence.n0, H.shape[1] - 1)
    rng, prior = evidence.rng or np.random.default_rng(0), prior_log_odds(evidence)
    log_density, people = _density(evidence), np.ascontiguousarray(H.T)
    fits, work = _fits(H, log_density)
    power = np.tile(_FLATTEST ** np.linspace(1, 0, RUNGS), LADDERS)
    chains = np.arange(power.size)
    # Initial sets are random, favoured by the odds of `ep`.
    belief = np.clip(posterior(evidence).log_odds, -30, 30)
    members = np.argsort(-belief + rng.gumbel(size=(power.size, n)), axis=1, kind="stable")[:, :n0].copy()
    inside = np.zeros((power.size, n), np.bool_)
    inside[chains[:, None], members] = True
    residual = x - people[members].sum(axis=1)
    steps = int(np.clip(WORK / (power.size * work), LEAST_STEPS, STEPS))
    counted, since = np.zeros(n), steps // 3
    for step in range(steps):
        place = rng.integers(0, n0, power.size)
        out = members[chains, place]
        inside[chains, out] = False
        residual += people[out]
        weight = power[:, None] * (fits(residual) + prior)
        weight[inside] = -np.inf
        weight -= weight.max(axis=1, keepdims=True)
        total = np.exp(weight, out=weight).cumsum(axis=1)
        into = (total <= (rng.random(power.size) * total[:, -1])[:, None]).sum(axis=1)
        members[chains, place], inside[chains, into] = into, True
        residual -= people[into]
        if step % _BETWEEN_EXCHANGES == 0:
            value = log_density(residual).sum(axis=1) + prior[members].sum(axis=1)
            lower = chains[(chains % RUNGS) % 2 == (step // _BETWEEN_EXCHANGES) % 2]
            lower = lower[lower % RUNGS < RUNGS - 1]
            gain = (power[lower + 1] - power[lower]) * (value[lower] - value[lower + 1])
            lower = lower[rng.standard_exponential(lower.size) >= -gain]
            here, there = np.append(lower, lower + 1), np.append(lower + 1, lower)
            for state in (members, inside, residual):
                state[here] = state[there]
        if step >= since:
            counted += inside[power == 1].sum(axis=0)
    return counted / (LADDERS * (steps - since))


def _fits(H: Floats, log_density: Densities) -> tuple[Densities, int]:
    """Return a function from residuals, (chains, m), to everybody's log-likelihood, (chains, n), and its cost."""
    m, n = H.shape
    low, high = H.min(axis=1), H.max(axis=1)
    is_high = np.where((high - low)[:, None] > 0, (high[:, None] == H), 0.0)
    if np.all((low[:, None] == H) | (high[:, None] == H)):

        def of_two(residual: Floats) -> Floats:
            lower = log_density(residual - low)
            gained: Floats = (log_density(residual - high) - lower) @ is_high
            both: Floats = lower.sum(axis=1)[:, None] + gained
            return both

        return of_two, n + 2 * m
    people = np.ascontiguousarray(H.T)
    return lambda residual: log_density(residual[:, None, :] - people).sum(axis=2), n * m


def _density(evidence: DecoderInputs) -> Densities:
    """Return the log-density of x's error; for exact answers a narrow Gaussian."""
    if exact(evidence) or evidence.noise is None:
        return Gaussian(_EXACT).log_density
    law = rescaled(evidence.noise, evidence.n0 * evidence.n1 / (evidence.n0 + evidence.n1))

    def log_density(error: Floats) -> Floats:
        # Impossible errors, of rounding for instance, must still be comparable.
        found = law.log_density(error)
        return np.where(np.isfinite(found), found, -1e4 - np.minimum(np.abs(error) / law.scale, 1e9))

    return log_density
