r"""Posterior probabilities by sampling: Metropolis swaps over the sets of N0 people.

A chain's state is a set of N0 people. A step proposes to let a random outsider in and a random member out and accepts
with probability min(1, exp(T * difference of the log-posterior)), which leaves the posterior to the power T unchanged.
In the first half of the steps T grows from `_FLATTEST`, at which swaps are easy, to 1; the second half, at T = 1,
counts how often each person is in. Many chains run side by side, a matrix row each. Where there is little noise the
posterior is rugged and no chain begun anywhere finds its peak in time: they begin at random sets that the odds of `ep`
favour.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from developer.reveal.decode import lstsq
from developer.reveal.decode.decoder import Evidence
from developer.reveal.decode.ep import centred, decided, exact, posterior, prior_log_odds, rescaled
from fairwall.laws.noise import Gaussian

CHAINS, STEPS_PER_PERSON = 32, 30
_FLATTEST = 0.3
_EXACT = 0.1
"""Exact answers are taken to have an error of this size, in people: with less, chains hardly move."""


def decode(evidence: Evidence) -> NDArray[np.float64]:
    """Estimate v from the sampled posterior probabilities, without sizes by least squares.

    Without a generator a fixed seed is used.
    """
    if not evidence.n0 or not evidence.n1:
        return lstsq.decode(evidence)
    share = marginals(evidence)
    # Half a count each way, so that nobody is certain.
    draws = CHAINS * STEPS_PER_PERSON * len(share) / 2
    share = (share * draws + 0.5) / (draws + 1)
    return decided(evidence, np.log(share) - np.log1p(-share))


def _density(evidence: Evidence) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """Give the log-density of x's error; for exact answers a narrow Gaussian."""
    if exact(evidence) or evidence.noise is None:
        return Gaussian(_EXACT).log_density
    law = rescaled(evidence.noise, evidence.n0 * evidence.n1 / (evidence.n0 + evidence.n1))

    def log_density(error: NDArray[np.float64]) -> NDArray[np.float64]:
        # Impossible errors, of rounding for instance, must still be comparable.
        found = law.log_density(error)
        return np.where(np.isfinite(found), found, -1e4 - np.minimum(np.abs(error) / law.scale, 1e9))

    return log_density


def marginals(evidence: Evidence) -> NDArray[np.float64]:
    """Return how often each person was disadvantaged in the second half, (n,), in [0, 1]."""
    H, x = centred(evidence)
    n, n0 = H.shape[1], min(evidence.n0, H.shape[1] - 1)
    rng = evidence.rng or np.random.default_rng(0)
    log_density, prior = _density(evidence), prior_log_odds(evidence)
    people = np.ascontiguousarray(H.T)
    chains = np.arange(CHAINS)
    # Each chain's people in an order of its own: the first n0 are the members.
    belief = np.clip(posterior(evidence).log_odds, -30, 30)
    order = np.argsort(-belief + rng.gumbel(size=(CHAINS, n)), axis=1, kind="stable")
    residual = x - people[order[:, :n0]].sum(axis=1)
    value = log_density(residual).sum(axis=1)
    steps = STEPS_PER_PERSON * n
    since, counted = np.zeros((CHAINS, n)), np.zeros(n)
    for step in range(steps):
        power = 1.0 if 2 * step >= steps else _FLATTEST ** (1 - 2 * step / steps)
        if 2 * step == steps - steps % 2:
            since[:] = step
        i, o = rng.integers(n0, n, CHAINS), rng.integers(0, n0, CHAINS)
        into, out = order[chains, i], order[chains, o]
        proposed = residual - people[into] + people[out]
        new = log_density(proposed).sum(axis=1)
        difference = new - value + prior[into] - prior[out]
        yes = np.flatnonzero(rng.standard_exponential(CHAINS) >= -power * difference)
        residual[yes], value[yes] = proposed[yes], new[yes]
        if 2 * step >= steps:
            np.add.at(counted, out[yes], step - since[yes, out[yes]])
            since[yes, into[yes]] = step
        order[yes, i[yes]], order[yes, o[yes]] = out[yes], into[yes]
    members = order[:, :n0]
    np.add.at(counted, members, steps - since[chains[:, None], members])
    counted /= CHAINS * (steps - (steps + 1) // 2)
    return counted
