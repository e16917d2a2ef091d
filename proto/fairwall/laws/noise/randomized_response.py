"""Randomised response on the protected attribute (Warner 1965): its probability, its price, its estimates.

Every person's a is flipped with probability p = 1/(1 + e^epsilon), independently.

**Price.** The release is the vector of noisy attributes, or a function of it. Between two neighbours' vectors one
coordinate differs in distribution, which gives each outcome p on one side and 1-p on the other. All else cancels, so
every outcome's log-ratio is ln((1-p)/p) or its negative: the loss is ln((1-p)/p) = epsilon for every n, all counts, any
metric and any number of models, and not only in the worst case but for each neighbour.

**Estimates.** For public values v (a prediction, or 1) let N~ and V~ be the number of people whose noisy attribute is 1
and the sum of v over them. E noisy a = p + (1-2p) a, so that

    N1 = (N~ - n p) / (1-2p),    V1 = (V~ - p sum v) / (1-2p)

are unbiased estimates of the number of advantaged people, and the sum over them, with variance sum v^2 p(1-p)/(1-2p)^2
= sum v^2 e^epsilon/(e^epsilon - 1)^2. The disadvantaged have the rest of the known total. Impossible estimates (a group
of less than one person, a sum below 0 or above the group's size) are moved to the nearest possible ones.

**Copies.** Of k independent copies with p_1 .. p_k all that matters of a person is the log-likelihood ratio
l = sum of +-ln((1-p_j)/p_j). tanh(l/2) = P(a=1) - P(a=0) at even odds, and its mean is u for a = 1 and -u for a = 0, by
symmetry. So y = 1/2 + tanh(l/2) / (2 t), t its largest value, lies in [0, 1] and has the means 1 - p and p, with
p = (1 - u/t)/2: it replaces a noisy attribute in the estimates above, and has the least variance of all such functions
of the copies where both groups are as large. One copy gives itself. The price is the sum of the
prices, no less: in the outcome where every copy speaks for the truth all log-ratios have one sign.

**A bound on errors.** Let e_i = (y_i less its mean)/(1 - 2p) be the error of a person's noisy attribute, and psi(x)
the logarithm of the mean of exp(x e) for a disadvantaged person; that of an advantaged one is psi(-x). For any A,
a sum of weights c_i times e_i has, for every theta > 0 (Chernoff),

    P(|sum| >= q) <= 2 exp(sum over i of max(psi(theta |c_i|), psi(-theta |c_i|)) - theta q).

`chernoff` is the least q, over some theta, for which the right side is 1 - level. Where hardly anybody is flipped
it is the sum's value if nobody is, as long as that is as likely as the level.

**The error of a gap** follows from the people who are flipped: K1 ~ Bin(n1, p) of the advantaged and K0 ~ Bin(n0,
p) of the disadvantaged. Then N~ = n1 - K1 + K0, and V~ loses the values of K1 people drawn without replacement from the
one group and gains those of K0 from the other: means k mean(v), variances k (size-k)/(size-1) var(v). `noisy_sums`
draws them so, with normal distributions for the sums given K1 and K0: exactly nothing where nobody is flipped, as is
likely at a large epsilon. So the median error of a gap is predicted from n0 and public numbers alone.
"""

import math
from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Floats
from fairwall.laws.noise.quantiles import LEVEL

COPIES_MAX = 10
"""Most copies that are combined: their outcomes are enumerated."""

_EXPONENT_MAX = 600.0

_MULTIPLES = 2.0 ** (np.arange(-6, 2) / 2)
"""Values of theta tried, in multiples of the best for normal distributions."""

_AT_ONCE = 2**15
"""Numbers of the models' weights processed at once, for each theta: they stay in a processor's cache."""


def turning_probability(epsilon: float) -> float:
    """Return p, rounded up: (1-p)/p is at most exp(epsilon), for epsilon's decimal too; in [0, 1/2], 0 for no limit."""
    if math.isinf(epsilon):
        return 0.0
    shrunk = math.exp(-epsilon)
    return min(0.5, max(shrunk / (1 + shrunk) * (1 + 2.0**-50 * max(1.0, epsilon)), math.ulp(0.0)))


def response_loss(probability: float) -> float:
    """Return the privacy loss of attributes flipped with this probability: |ln((1-p)/p)|, infinite at 0 and 1."""
    if not 0 <= probability <= 1:
        raise ValueError("the probability must be between 0 and 1")
    return math.inf if probability in (0, 1) else abs(math.log1p(-probability) - math.log(probability))


def response_estimates(
    noisy_size: Floats, noisy_sums: Floats, people: int, totals: Floats, probability: float
) -> tuple[Floats, Floats]:
    """Return estimates of N1, in 1 .. n-1 and N~'s shape, and of each model's sum over the advantaged, shape (m,).

    Parameters
    ----------
    noisy_size, noisy_sums : N~, shape (1,) or for each model another, and V~ of each model, shape (m,).
    people, totals : n, and the sum of v over everybody, shape (m,). Public.
    probability : p, at most 1/2.
    """
    # At p = 1/2 the noisy attributes say nothing, and any denominator will do.
    kept = max(1 - 2 * probability, 2.0**-52)
    n1 = np.clip((noisy_size - people * probability) / kept, 1, people - 1)
    sums = (noisy_sums - probability * totals) / kept
    return n1, np.clip(sums, np.maximum(totals - (people - n1), 0), np.minimum(totals, n1))


def combined(copies: Floats, probabilities: Sequence[float]) -> tuple[Floats, float]:
    """Return y for each person, in [0, 1], shape (n,), from noisy copies of attributes, and p: y's mean is p or 1 - p.

    The copies have the shape (k, n), each 0 or 1, with their flipping probabilities, at most 1/2 and at most one of
    them 0. Beyond `COPIES_MAX` copies the noisiest are left out.
    """
    best = _best(probabilities)
    kept = [probabilities[j] for j in best]
    if len(best) == 1:
        return copies[best[0]], kept[0]
    return _said(copies[best], np.array(kept)), mean_of_copies(probabilities)


def mean_of_copies(probabilities: Sequence[float]) -> float:
    """Return p: the mean of `combined` for a disadvantaged person."""
    said, chances = _law_of_copies(probabilities)
    return float(chances @ said)


def turned_law(probabilities: Sequence[float]) -> tuple[Floats, Floats]:
    """Return the values of e for a disadvantaged person and their probabilities; negative for an advantaged one."""
    said, chances = _law_of_copies(probabilities)
    p = float(chances @ said)
    return (said - p) / max(1 - 2 * p, 2.0**-52), chances


def chernoff(counted: Floats, weights: Floats, off: Floats, chances: Floats, level: float) -> Floats:
    """Return a bound on the absolute value of a weighted sum of e that holds with at least `level`, shape (m,).

    `counted`, `weights`: the number of people with each weight, and the weights, at least 0, shape (m, k) each. `off`,
    `chances`: as from `turned_law`. `level`: above 0 and below 1.
    """
    # Weights that nobody has in any model are dropped, but at least one is kept.
    somebody = (counted > 0).any(axis=0) | (np.arange(counted.shape[1]) == 0)
    counted, weights = counted[:, somebody], weights[:, somebody]
    squares = np.maximum((counted * weights**2).sum(axis=1) * float(chances @ off**2), 1e-30)
    usual = int(np.argmax(chances))
    nobody = counted.sum(axis=1) * math.log(max(float(chances[usual]), 1e-300)) >= math.log(level)
    best = np.where(nobody, (counted * weights).sum(axis=1) * abs(float(off[usual])), np.inf)
    missed = math.log(2 / (1 - level))
    theta = _MULTIPLES[:, np.newaxis] * np.sqrt(2 * missed / squares)
    # A larger theta gives no better bound, and its exponentials would overflow.
    theta = np.minimum(theta, _EXPONENT_MAX / np.maximum(weights.max(axis=1) * np.abs(off).max(), 1e-30))
    for first in range(0, len(weights), block := max(1, _AT_ONCE // max(weights.shape[1] * off.size, 1))):
        models = slice(first, first + block)
        grown = np.exp((theta[:, models, np.newaxis] * weights[models])[..., np.newaxis] * off)
        psi = np.log(np.maximum(grown @ chances, (1 / grown) @ chances))
        found = ((counted[models] * psi).sum(axis=-1) + missed) / theta[:, models]
        best[models] = np.minimum(best[models], found.min(axis=0))
    return best


def response_widths(
    deviation: float, n: int, n0: NDArray[np.int_], gaps: Floats, off: Floats, chances: Floats
) -> tuple[Floats, float]:
    """Return the half-widths of guaranteed intervals, in the gaps' shape, and the error bound of N0.

    L is the sum of e_i (v_i - nu'), and nu' is about as far from the mean of v as the gap is from 0: with q0 and q1
    the quantiles of the sums of e_i (v_i - mean) and of e_i, and h = N0 N1 / n, the farthest gap G + g that is accepted
    where the gap is G has g h = sqrt(q0^2 + q1^2 (G+g)^2). Where N0 is not known even to h, nothing is promised, and
    they are infinite.

    `deviation`: of v. `n`, `n0`: the people, and the group sizes. `gaps`: from 0 on, shape (..., sizes). `off`,
    `chances`: as from `turned_law`.
    """
    (of_sums,), (of_size,) = (
        chernoff(np.full((1, 1), float(n)), np.full((1, 1), of), off, chances, LEVEL) for of in (deviation, 1.0)
    )
    apart = n0 * (n - n0) / n
    left = apart**2 - of_size**2
    # The larger root of a quadratic equation for g.
    middle = of_size**2 * gaps
    root = np.sqrt(middle**2 + np.maximum(left, 0.0) * (of_sums**2 + of_size**2 * gaps**2))
    widths: Floats = np.where(left > 0, (middle + root) / np.maximum(left, 1e-30), np.inf)
    return widths, float(of_size)


def _law_of_copies(probabilities: Sequence[float]) -> tuple[Floats, Floats]:
    """Return the values of `combined` for a disadvantaged person, and their probabilities; else 1 less the value."""
    kept = np.array([probabilities[j] for j in _best(probabilities)])
    outcomes = np.array(list(product((0.0, 1.0), repeat=len(kept)))).T
    chances = np.prod(np.where(outcomes, kept[:, np.newaxis], 1 - kept[:, np.newaxis]), axis=0)
    return (outcomes[0] if len(kept) == 1 else _said(outcomes, kept)), chances


def _best(probabilities: Sequence[float]) -> list[int]:
    return sorted(range(len(probabilities)), key=lambda j: probabilities[j])[:COPIES_MAX]


def _said(bits: Floats, probabilities: Floats) -> Floats:
    """Return y for copies of many people, shape (k, n): shape (n,)."""
    with np.errstate(divide="ignore"):
        weights = np.log1p(-probabilities) - np.log(probabilities)
    largest = math.tanh(float(weights.sum()) / 2)
    speaks = np.tanh((2 * bits - 1).T @ weights / 2)
    return 0.5 + speaks / (2 * largest) if largest else np.full(speaks.shape, 0.5)


def noisy_sums(
    sizes: tuple[int, int],
    means: tuple[Floats, Floats],
    variance: Floats,
    probability: float,
    generator: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Draw N~ and V~ of m models, shape (m,) each, from the groups' sizes, means and variances.

    Each model has its own flipped people. In a batch they are the same people, which changes no answer's distribution
    and would only make the draws less informative.

    Sizes and means are of the disadvantaged and of the advantaged: the number of people, and each model's mean over
    them, shape (m,); the variance, of the same shape, is of its values within a group.
    """
    turned = [generator.binomial(size, probability, mean.size) for size, mean in zip(sizes, means, strict=True)]
    moved = [
        k * mean + np.sqrt(variance * (k * (size - k) / max(size - 1, 1))) * generator.standard_normal(mean.size)
        for k, size, mean in zip(turned, sizes, means, strict=True)
    ]
    size = (sizes[1] - turned[1] + turned[0]).astype(np.float64)
    return size, sizes[1] * means[1] + moved[0] - moved[1]
