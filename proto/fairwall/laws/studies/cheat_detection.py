"""Detection of cheats: at a curator's noise, at its sample of rows, and at a deployed model that was never audited.

**The best of K noises.** For the largest M of K Laplace numbers of scale 1, E M is the integral of P(M > x) over x > 0
less that of P(M < x) over x < 0. Below 0 the distribution is F(x) = e^x / 2, and the second is that of e^{Kx} / 2^K:
1 / (K 2^K). Above, F(x) = u = 1 - e^{-x} / 2 and dx = du / (1 - u), so the first is the integral of
(1 - u^K) / (1 - u) = 1 + u + ... + u^(K-1) over u from 1/2 to 1. So

    E M = sum over j = 1..K of (1 - 2^-j) / j  -  2^-K / K:

3/4 of the scale for K = 2, 1.589 for 5, 2.236 for 10, 4.494 for 100. The honest answer has the first of the K noises,
of mean 0, so E M is also how far answers move; the answer is the honest one with probability 1 / K.

**Openings.** Where each request is answered dishonestly with probability f, independently, any s requests chosen
blindly include such an answer with probability 1 - (1 - f)^s.

**Statistics.** The noise of s opened answers is known; honest noise is Laplace up to the grid, which is at most 2^-20
of the scale. Its largest distance D from that distribution follows Kolmogorov's exact distribution; D is tested at
`NOISE_LEVEL` only.

**Customer reports** of a model that differs from the audited one.
**Exact reports.** Of n audited rows f are shown with decisions that differ from the deployed model's. A customer asks
that model about k rows, drawn at random once the f are settled. Of C(n, k) draws, all as likely, C(n - f, k) miss all
f: one is hit with probability 1 - C(n - f, k) / C(n, k).

**Reports that may be wrong**, each by itself with probability q < 1/2. The number h of false rows among the k is
hypergeometric. Each of them contradicts its report unless that is wrong, and each of the k - h others does if it is:
given h there are Bin(h, 1 - q) + Bin(k - h, q) contradictions. For an honest developer f = 0, and they are Bin(k, q).
Accusing from c contradictions on accuses an honest developer with probability P(Bin(k, q) >= c); `least` is the
smallest c that keeps this at an alarm level. For q = 0 that is 1, and no honest developer is ever accused.

The draw has to come after the f: a developer who knows the k rows first changes none of them, hence the commitment.

**Goodness of fit**: whether a sample looks like the population that it is shown for, by five tests.
The regulator has other people of the same table, as many as the sample has, and compares features, label and group.
Tests of one column each (Kolmogorov and Smirnov's) are corrected for the number of columns; those of all columns
together (Wasserstein's distance summed over columns, the maximum mean discrepancy with a Gaussian kernel of the median
distance, the energy distance) compare with permutations of both. Pearson's chi-squared test is of the four cells of
label and group, by which a sample is picked.
"""

from __future__ import annotations

import numpy as np

from fairwall.arrays import Floats

NOISE_LEVEL = 1e-7
"""Probability of accusing an honest service because of its noise."""


def expected_shift(draws: int) -> float:
    """Return the mean of the largest of `draws` Laplace numbers, in scales."""
    numbers = np.arange(1, draws + 1)
    return float(((1 - 2.0**-numbers) / numbers).sum() - 2.0**-draws / draws)


def affected(cheat: str, strength: int, share: float) -> float:
    """Return the probability that a cheat changes the answer to a request.

    ``cheat`` is "none", "best" of ``strength`` noises, or anything else done to a ``share`` of the requests. Rows that
    are left out or relabelled move an answer unless it is rounded to the same grid step.
    """
    if cheat == "none":
        return 0.0
    return share * (1 - 1 / strength) if cheat == "best" else share


def caught(affected: float, openings: int) -> float:
    """Return the probability that at least one opening is of a changed answer."""
    return 1 - (1 - affected) ** openings


def p_value(noise: Floats) -> float:
    """Return the exact Kolmogorov-Smirnov p-value of noise, shape (answers,), against Laplace noise of scale 1."""
    from scipy.stats import kstest

    return float(kstest(noise, "laplace", method="exact").pvalue)


def detection(people: int, flips: int, checks: int, wrong: float = 0.0, least: int = 1) -> float:
    """Return the probability that at least `least` of the customer's reports contradict the audit.

    `people`, `flips`, `checks`: n audited rows, of which f <= n are shown otherwise and k <= n are checked. `wrong`:
    the probability that a report is wrong, in [0, 1/2).
    """
    found = 0.0
    log = np.append(0.0, np.cumsum(np.log(np.arange(1, people + 1))))  # logs of factorials

    def ways(of: int, some: int) -> float:
        return float(log[of] - log[some] - log[of - some])

    for hit in range(max(0, checks - (people - flips)), min(flips, checks) + 1):
        drawn = np.exp(ways(flips, hit) + ways(people - flips, checks - hit) - ways(people, checks))
        contradictions = np.convolve(_binomial(hit, 1 - wrong), _binomial(checks - hit, wrong))
        found += drawn * contradictions[least:].sum()
    return min(float(found), 1.0)


def least(checks: int, wrong: float, alarm: float) -> int:
    """Return the least number of contradictions, at least 1, from which to accuse.

    More than ``checks`` where no number of contradictions is rare enough. `checks` and `wrong` are as of `detection`;
    `alarm` is the largest probability of accusing an honest developer, in (0, 1).
    """
    tail: Floats = np.append(np.cumsum(_binomial(checks, wrong)[::-1])[::-1], 0.0)
    return max(1, int(np.argmax(tail <= alarm)))


def _binomial(trials: int, probability: float) -> Floats:
    """Return the probabilities of 0 to ``trials`` hits."""
    if probability in (0.0, 1.0):
        return np.asarray(np.eye(trials + 1)[trials if probability else 0], np.float64)
    hits = np.arange(trials + 1)
    ways = np.append(0.0, np.cumsum(np.log((trials - hits[:-1]) / hits[1:])))
    return np.asarray(np.exp(ways + hits * np.log(probability) + (trials - hits) * np.log1p(-probability)))


SAMPLE_LEVEL = 0.05
TESTS = ("ks", "chi2", "wasserstein", "mmd", "energy")

CORRECTED = SAMPLE_LEVEL / len(TESTS)
"""P-value below which one test rejects a sample, so that all five reject at most 5% of honest samples."""

_PERMUTATIONS = 199


def p_values(sample: Floats, others: Floats, rng: np.random.Generator) -> dict[str, float]:
    """Return each test's p-value for two tables of shape (rows, columns); the last two columns are label and group."""
    from scipy.spatial.distance import pdist, squareform
    from scipy.stats import chi2_contingency, ks_2samp

    both = np.concatenate([sample, others])
    varied = both[:, both.std(axis=0) > 0]
    scaled = varied / varied.std(axis=0)
    columns = varied.shape[1]
    each = [ks_2samp(one[: len(sample)], one[len(sample) :], method="asymp").pvalue for one in varied.T]
    cells = (2 * both[:, -2] + both[:, -1]).astype(np.intp)
    table = np.array([np.bincount(part, minlength=4) for part in (cells[: len(sample)], cells[len(sample) :])])
    squares = squareform(pdist(scaled, "sqeuclidean"))
    inside = np.zeros((_PERMUTATIONS + 1, len(both)))
    inside[0, : len(sample)] = 1
    for row in inside[1:]:
        row[rng.permutation(len(both))[: len(sample)]] = 1
    signs = inside / len(sample) - (1 - inside) / len(others)

    def of_kernel(kernel: Floats) -> float:
        return _permuted(np.einsum("ij,ij->i", signs @ kernel, signs))

    return {
        "ks": min(1.0, columns * float(min(each))),
        "chi2": float(chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue),
        "wasserstein": _permuted(np.sum([_wasserstein(signs, column) for column in scaled.T], axis=0)),
        "mmd": of_kernel(np.exp(-squares / np.median(squares))),
        "energy": of_kernel(-np.sqrt(squares)),
    }


def _wasserstein(signs: Floats, column: Floats) -> Floats:
    """Return the Wasserstein distance of a column for each split; for two values, the difference of means."""
    if len(np.unique(column)) == 2:
        return np.abs(signs @ column)
    order = np.argsort(column)
    return np.abs(np.cumsum(signs[:, order], axis=1)[:, :-1]) @ np.diff(column[order])


def _permuted(distances: Floats) -> float:
    """Return the share of all distances that are at least the first."""
    return float((distances >= distances[0] - 1e-12).mean())
