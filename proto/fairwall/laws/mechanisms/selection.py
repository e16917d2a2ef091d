"""Mechanisms that answer with a choice: models above a threshold, or the fairest model.

**Sparse vector** (Lyu, Su, Li, VLDB 2017, Algorithm 7 without its third step). A threshold gets noise rho once, each
query its own noise nu_i; yes where q_i + nu_i >= T + rho, and nothing after the c-th yes. Let each query move by at
most Delta between neighbours. Shift rho by Delta: then every no of one data set is a no of the other, at any
nu_i, at a price of Delta / scale(rho). Each yes is kept by shifting its own nu_i by 2 Delta (Delta for the query, Delta
for rho), at a price of 2 Delta / scale(nu). There are at most c of them, for any number of noes, so

    epsilon = Delta / scale(rho) + 2 c Delta / scale(nu).

The comparison's variance is 2 scale(rho)^2 + 2 scale(nu)^2; with epsilon1 + epsilon2 = epsilon it is least at
epsilon1 : epsilon2 = 1 : (2 c)^(2/3). Our queries may move in opposite directions (one flip raises the gap of one model
and lowers that of another), so the factor 2 cannot be spared.

Nor can anything else: this is the supremum over batches, for every threshold. l noes to a gap g have the probability
F(T + rho - g)^l, which for large l is a step in rho, exp(-l/2 exp(-x/scale(nu))) with x = T + rho - g, about
x = scale(nu) ln l. So rho lies far above 0 and in the tail of every yes: where the l gaps fall by Delta, rho falls with
them, at a price of Delta / scale(rho), and a yes to a gap that rises by Delta comes 2 Delta nearer.

**Permute and flip** (McKenna, Sheldon, NeurIPS 2020). Models come in random order; each is chosen with probability
p_i = exp(epsilon (u_i - max u) / (2 Delta)), u_i its score, until one is. Let them arrive at independent uniform times:
model i is chosen if it arrives at t, accepts, and nobody who came before did, which another one has with probability
1 - t p_j. Hence

    P(i) = p_i * integral over t in [0, 1] of the product over j != i of (1 - t p_j).

*Privacy.* P depends on differences of scores alone. It falls when another score rises: while p_j rises below 1 the
product falls; beyond, all other p fall by a common factor 1/c, and with s = t/c, P(i) becomes
p_i * integral over s in [0, 1/c] of (1 - c s) prod (1 - s p_k), which falls with c. So between neighbours, whose scores
move by at most Delta each, the most that P(i) can fall is where u_i alone falls by 2 Delta. While u_i is above all
others, p_i = 1 stays and the others' p rise by c = exp(epsilon * fall / (2 Delta)), staying at most 1, and

    integral over t in [0, 1] of prod (1 - t c p_j) = 1/c * integral over s in [0, c] of prod (1 - s p_j)
                                                   >= 1/c * integral over s in [0, 1] of prod (1 - s p_j);

once u_i is below, p_i falls by the same factor and nothing else changes. The factors multiply: at most exp(epsilon).
It is reached, for two models or more, wherever u_i is not above all others before its fall.
"""

import math
from dataclasses import dataclass

import numpy as np

from fairwall.arrays import Floats
from fairwall.laws.metrics.metric import METRICS


def unsigned(metric: str) -> str:
    """Return the key of the metric's absolute gap, which moves less, or the key itself if there is none."""
    name = f"abs_{metric}"
    return name if name in METRICS else metric


@dataclass(frozen=True)
class SparseVectorNoise:
    """Noise of answers above or below a threshold.

    Gaps are compared with the threshold, both with Laplace noise of scales of at least 0. After `positives` answers of
    yes nothing more is answered; None for no end.
    """

    threshold: float
    threshold_scale: float
    query_scale: float
    positives: int | None

    def probability(self, gaps: Floats, answers: tuple[bool, ...]) -> float:
        """Return the probability of the answers: all of them, or fewer if the last one is the last allowed yes.

        An integral over the threshold's noise, by Gauss and Legendre's rule on pieces between the integrand's kinks,
        for real-valued noise with both scales above 0, or no noise on the queries.
        """
        reach = 60 * self.threshold_scale
        kinks = {-reach, 0.0, reach, *(float(x) for x in gaps - self.threshold if abs(x) < reach)}
        cuts = sorted(kinks | {k * self.threshold_scale for k in range(-59, 60)})
        nodes, weights = np.polynomial.legendre.leggauss(24)
        low, high = np.array(cuts[:-1])[:, None], np.array(cuts[1:])[:, None]
        rho = (low + high) / 2 + (high - low) / 2 * nodes
        density = np.exp(-np.abs(rho) / self.threshold_scale) / (2 * self.threshold_scale)
        for gap, yes in zip(gaps, answers, strict=False):
            density = density * self._answer_probability(self.threshold + rho - gap, yes)
        return float(np.sum(density * weights * (high - low) / 2))

    def _answer_probability(self, missing: Floats, yes: bool) -> Floats:
        """Return P(noise >= missing) for a yes, P(noise < missing) for a no."""
        missing = missing if yes else -missing
        if self.query_scale == 0:
            return np.where(missing <= 0, 1.0, 0.0)
        tail = 0.5 * np.exp(-np.abs(missing) / self.query_scale)
        return np.where(missing >= 0, tail, 1 - tail)


def sparse_vector(threshold: float, sensitivity: float, positives: int, epsilon: float) -> SparseVectorNoise:
    """Return the noise that costs epsilon in all, infinite for none, for queries of this sensitivity.

    ValueError unless c, the `positives`, is at least 1 and epsilon above 0.
    """
    if positives < 1:
        raise ValueError("positives must be at least 1")
    if not epsilon > 0:
        raise ValueError("epsilon must be above 0")
    weight = (2 * positives) ** (2 / 3)
    for_threshold, for_queries = epsilon / (1 + weight), epsilon * (weight / (1 + weight))
    return SparseVectorNoise(
        threshold, sensitivity / for_threshold, 2 * positives * sensitivity / for_queries, positives
    )


def permute_and_flip_exponents(scores: Floats, sensitivity: float, epsilon: float) -> Floats:
    """Return x for acceptance probabilities exp(-x): 0 for the best score, infinite for others if epsilon is infinite.

    Scores, shape (m,), are the better the higher, and move by at most the sensitivity between neighbours; with
    sensitivity 0, neighbours agree on every score.
    """
    behind: Floats = scores.max() - scores
    slope = epsilon / (2 * sensitivity) if sensitivity else math.inf
    return np.multiply(behind, slope, out=np.zeros_like(behind), where=behind > 0)
