"""The noise of each mechanism on gaps, and its exact privacy loss.

**Laplace.** For shifts that sum to at most m Delta, the log-ratio of the products of m Laplace densities is at most
m Delta / scale. With Delta the global sensitivity, scale = m Delta / epsilon is epsilon-private.

**Two Cauchy distributions** with locations f, f' and scales s, s'. With z = f + i s in the upper half plane,
the density s / ((x-f)^2 + s^2) is the plane's Poisson kernel at the boundary point x. The supremum over x of the
log-ratio of two Poisson kernels is the hyperbolic distance of their points, so the privacy loss is

    arccosh(1 + ((f-f')^2 + (s-s')^2) / (2 s s')) = 2 arsinh(|z-z'| / (2 sqrt(s s'))),

in both directions. (Directly: an isometry moves z to i and z' to i r with r = exp(distance), where the ratio
(1 + u^2) r / (r^2 + u^2) lies between 1/r and r.) The second form keeps its digits where the loss is small. Coordinates
are independent given the data and all of them can be worst at once, so m queries cost m times this.

**Conceal** is Algorithm 3 of Hamman, Chen, Dutta, FAccT 2023, with the sensitivity corrected: b = epsilon / (6 m),
S1 the b-smooth sensitivity of one query, Cauchy noise of scale 6 m S1 / epsilon = S1 / b. Smoothness gives
|ln(s/s')| <= b; the shift is at most the local sensitivity on either side, hence at most b min(s, s'). So

    cosh(loss of one query) = cosh(ln(s/s')) + shift^2 / (2 s s') <= cosh(b) + b^2 / 2 <= cosh(sqrt(2) b),

the last step term by term in the power series. The batch costs at most m sqrt(2) b = sqrt(2)/6 epsilon: it is private,
and leaves more than three quarters of epsilon unspent.

**Laplace noise on the smooth sensitivity**: Theorem 8 of Hamman, Chen, Dutta, FAccT 2023, epsilon below 1.
With beta = epsilon / (4 (m + L)), L = ln(2/delta), and S the beta-smooth sensitivity of one query, noise of scale
2 m S / epsilon is (epsilon, delta)-private (after Nissim, Raskhodnikova, Smith 2007). Why: let s <= s' be the scales of
two neighbours, r = s'/s <= exp(beta), and d <= epsilon s / (2 m) how far each query moves.

* Shifting m coordinates costs at most m d / s <= epsilon/2, surely.
* Dilating costs at most m ln r <= epsilon/4 where the narrower law draws. Where the wider one draws Z, in its own
  units, it costs T (r - 1) - m ln r < T (exp(beta) - 1), with T = sum |Z_i| a Gamma(m, 1) variable. That is at most
  epsilon/2 unless T > t = epsilon / (2 (exp(beta) - 1)) >= 2 (m + L) (1 - 0.6 beta) >= 2 (m + L) - 0.3 epsilon, for
  beta <= 0.15. P(T > t) <= 2^m exp(-t/2) (Chernoff) <= (2/e)^m exp(0.15 epsilon) delta/2 < delta/2.

So the loss exceeds epsilon with a probability below delta/2. The theorem is loose; it is offered as stated.

**Sample and aggregate** (Nissim, Raskhodnikova, Smith, STOC 2007): the noise on a mean over blocks, and its price.
A mean over k blocks, of which one flip touches one, moves by 1/k of that block's move. For m models Laplace
noise of scale m/(k epsilon) on each mean covers moves of 1 of the block's gap.

**A block's largest move.** A gap is 0 in a block that lacks a group. With two blocks or more, the larger group
has at least the n/2 people that fill a block. Let the deal put only such people into one; the flip of one of them makes
a group of one, and with their prediction 1 and all others' 0 the gap goes from 0 to 1 or -1. All models can do so at
once: the loss is epsilon, for all counts and the worst deal (deals are independent of A, so that the loss is taken
given the deal, which may be public). A single block is everybody: no group in it is empty, before or after, and it
moves by the local sensitivity at most.

An absolute gap is the absolute value of the noisy mean. Its distribution depends on |mean| alone; the log-ratio of two
such is largest at 0, with the difference of the two |mean| over the scale: hence the same with the absolute gap's own
sensitivity.

**Propose, test, release**: the proof is in `compliance.mechanisms.propose_test_release`.

**Bounding an answer to its metric's range**: the effect on the answer's distribution, and on its price.
All distributions live on the grid of a public step: the range is 0 .. w, the truth f one of these points, and noise is
discrete Laplace, q^|k| with q = exp(-lambda), lambda = step / scale.

**Clamp.** An answer outside the range moves to the nearer end: post-processing, free for any mechanism, and it never
moves an answer away from the truth.

**Boundary-inflate** (Liu 2019: boundary inflated truncation). The mass outside the range is put on the ends. That is
the distribution of the clamped answer: P(0) = P(noise <= -f), P(w) = P(noise >= w - f); hence free too.

**Truncate** (Liu 2019; Holohan, Antonatos, Braghin, Mac Aonghusa 2018). Noise is drawn again until the answer lies in
the range: the distribution is divided by its mass inside,

    Z(f) = sum over k = 0 .. w of q^|k-f| = (1 + q - q^(f+1) - q^(w-f+1)) / (1 - q),

which depends on the truth. It is NOT free: a neighbour's answer differs in the density, by at most d lambda for a truth
d points away, and in Z. Z is symmetric and concave (minus a sum of convex functions), so ln Z is concave and changes
most over the first d points from an end: there, f = 0, all the noise downwards is redrawn. The answer k = 0 has both
factors at their worst at once, and both grow with d, so the loss of one answer is exactly

    loss(lambda) = d lambda + ln(Z(d) / Z(0)),    Z(d) / Z(0) = 1 + q (1 - q^d) (1 - q^(w-d)) / (1 - q^(w+1)).

Moving the truth by one point changes each term of Z by the factor exp(lambda) at most. Hence d lambda <= loss <=
2 d lambda: twice the noise always suffices, the same noise never does. `truncated_scale` finds the noise in between.
m answers are independent and all can be at their worst: m times that.
"""

from __future__ import annotations

import math

from fairwall.laws.metrics.metric import find_metric
from fairwall.laws.metrics.sensitivity import (
    flip_sensitivity,
    global_sensitivity,
    local_sensitivity,
    require_groups,
    smooth_sensitivity,
)
from fairwall.laws.noise.distributions import Cauchy, Laplace


def laplace_law(metric: str, n: int, queries: int, epsilon: float, minimum_group: int = 1) -> Laplace:
    """Return the noise that makes a batch's answers epsilon-private together: scale m * global sensitivity / epsilon.

    From public numbers alone. ValueError for an argument out of range.

    `n`: people in the metric's stratum. `queries`: m, the size of the batch, at least 1. `epsilon`: privacy budget of
    the whole batch, above 0; infinite for no noise. `minimum_group`: g, the least size of both groups in every
    neighbour too, `fairwall.laws.metrics.sensitivity`.
    """
    require_batch(queries, epsilon)
    return Laplace(queries * global_sensitivity(metric, n, minimum_group=minimum_group) / epsilon)


def conceal_law(metric: str, n0: int, n1: int, queries: int, epsilon: float, minimum_group: int = 1) -> Cauchy:
    """Return Attribute-Conceal's noise, on the corrected smooth sensitivity. Arguments and errors as of `laplace_law`.

    The scale is 6 m S / epsilon, where S is smooth with beta = epsilon / (6 m). The counts in the metric's stratum,
    each at least 1, are secret, and so is the scale.
    """
    require_batch(queries, epsilon)
    # With no limit on epsilon beta would be infinite too; the scale's limit is 0.
    beta = 0.0 if math.isinf(epsilon) else epsilon / (6 * queries)
    return Cauchy(6 * queries * smooth_sensitivity(metric, n0, n1, beta, minimum_group=minimum_group) / epsilon)


def laplace_loss(metric: str, n0: int, n1: int, queries: int, epsilon: float, minimum_group: int = 1) -> float:
    """Return the exact privacy loss of `laplace_law` for these counts: the worst log-ratio to a neighbour.

    That is m * local sensitivity / scale, at most epsilon; 0 where there are no neighbours.
    """
    scale = laplace_law(metric, n0 + n1, queries, epsilon, minimum_group).scale
    change = local_sensitivity(metric, n0, n1, minimum_group=minimum_group)
    if change == 0:
        return 0.0
    return queries * change / scale if scale else math.inf


def cauchy_loss(shift: float, scale: float, other_scale: float) -> float:
    """Return the largest log-ratio, in either direction, of two Cauchy densities whose locations differ by a shift.

    ValueError for a scale that is not above 0.
    """
    if not (scale > 0 and other_scale > 0):
        raise ValueError("both scales must be above 0")
    return 2 * math.asinh(math.hypot(shift, scale - other_scale) / (2 * math.sqrt(scale) * math.sqrt(other_scale)))


def conceal_loss(metric: str, n0: int, n1: int, queries: int, epsilon: float, minimum_group: int = 1) -> float:
    """Return the exact privacy loss of `conceal_law` for these counts: the worst log-ratio to a neighbour.

    That is at most sqrt(2)/6 * epsilon; 0 where there are no neighbours.
    """
    scale = conceal_law(metric, n0, n1, queries, epsilon, minimum_group).scale
    n = n0 + n1
    losses = [0.0]
    for other_n0, leaving in ((n0 - 1, n0), (n0 + 1, n1)):
        if leaving == minimum_group:  # the flip would leave too few
            continue
        if scale == 0:
            return math.inf
        other_scale = conceal_law(metric, other_n0, n - other_n0, queries, epsilon, minimum_group).scale
        losses.append(queries * cauchy_loss(flip_sensitivity(metric, n, leaving), scale, other_scale))
    return max(losses)


def printed_laplace_scale(n: int, queries: int, epsilon: float) -> float:
    """Return the Laplace scale of Theorem 5 as printed, (m/2 + m/(n-1)) / epsilon, for the report's comparison.

    The paper uses it for statistical parity, where it is right, and with the same n for equal opportunity, where it is
    too small. It protects nobody here. ValueError for fewer than 2 people in the test set, and as of `laplace_law`.
    """
    require_batch(queries, epsilon)
    if not n >= 2:
        raise ValueError("n must be at least 2")
    return (queries / 2 + queries / (n - 1)) / epsilon


def printed_conceal_scale(n0: int, n1: int, queries: int, epsilon: float) -> float:
    """Return the Cauchy scale of Algorithm 3 and Theorem 7 as printed, for the report's comparison.

    It is too small for n0 = 1, and where n0 is not the minority. It protects nobody here. Errors as of `conceal_law`.
    """
    require_batch(queries, epsilon)
    require_groups(n0, n1)
    if math.isinf(epsilon):
        return 0.0
    near = queries / (n1 + 1) + queries / n0
    far = math.exp(-epsilon * (n0 - 2) / (6 * queries)) * (queries / (n0 + n1 - 1) + queries / 2)
    return 6 * max(near, far) / epsilon


def require_epsilon(epsilon: float) -> None:
    """Raise ValueError unless epsilon is above 0; infinite is allowed, NaN is not."""
    if not epsilon > 0:
        raise ValueError("epsilon must be above 0")


def require_batch(queries: int, epsilon: float) -> None:
    """Raise ValueError unless queries is a whole number of at least 1 and epsilon above 0."""
    if not (queries >= 1 and float(queries).is_integer()):
        raise ValueError("queries must be a whole number of at least 1")
    require_epsilon(epsilon)


# The loss is computed with a relative error of a few 2^-53.
_SLACK = 2.0**-40


def metric_range(metric: str) -> tuple[float, float]:
    """Return the least and the largest value of a metric; the largest is infinite for disparate impact."""
    found = find_metric(metric)
    if not found.bounded:
        return 0.0, math.inf
    if not found.absolute:
        return -1.0, 1.0
    return 0.0, float(len(found.strata)) if found.joined == "sum" else 1.0


def truncation_loss(distance: int, width: int, rate: float) -> float:
    """Return the privacy loss of one truncated answer, between distance * rate and twice that.

    `distance`: d, the most steps between two neighbours' truths, in 0 .. w. `width`: w, the range in steps, at least 1.
    `rate`: lambda = step / scale, above 0.
    """
    grown = math.exp(-rate) * math.expm1(-rate * distance) * math.expm1(-rate * (width - distance))
    return distance * rate + math.log1p(-grown / math.expm1(-rate * (width + 1)))


def truncated_scale(distance: int, width: int, step: float, epsilon: float) -> float:
    """Return a scale at which one truncated answer costs epsilon; `distance` and `width` as of `truncation_loss`.

    The step is a power of two, epsilon above 0 and finite; the scale is between distance * step / epsilon and twice
    that, 0 where neighbours do not differ.
    """
    if not 0 < epsilon < math.inf:
        raise ValueError("epsilon must be above 0 and finite")
    if distance == 0:
        return 0.0
    # The loss at the lower end stays at most epsilon throughout the bisection.
    low, high = (1 - 2 * _SLACK) * epsilon / (2 * distance), epsilon / distance
    while low < (rate := (low + high) / 2) < high:
        low, high = (rate, high) if truncation_loss(distance, width, rate) <= (1 - _SLACK) * epsilon else (low, rate)
    return step / low


MINORITY_SHARE = 0.05
"""Default share of the smallest group for which the noise is calibrated."""

TEST_SHARE = 0.25
"""Default part of epsilon that the test spends."""


def proposed_size(people: int, minority_share: float = MINORITY_SHARE, minimum_group: int = 1) -> int:
    """Return b, the least size of both groups for which the noise is calibrated, in a stratum of `people` people.

    At least g+1: nobody leaves a smaller group, so that the bound then always holds.
    """
    least = minimum_group + 1
    return min(max(least, math.ceil(minority_share * people)), max(least, people // 2))


def proposed_bound(metric: str, people: int, minority_share: float = MINORITY_SHARE, minimum_group: int = 1) -> float:
    """Return B, the most that one flip moves a metric while both groups have at least `proposed_size` people.

    There are at least 2g+1 people in its stratum, and the minority share is in (0, 1/2].
    """
    return flip_sensitivity(metric, people, proposed_size(people, minority_share, minimum_group))


def released_law(bound: float, queries: int, epsilon: float, test_share: float = TEST_SHARE) -> Laplace:
    """Return the noise on each answer that passes; public.

    `bound` is the largest `proposed_bound` of the metric's strata, epsilon the budget of the whole batch, test
    included, and `test_share` the test's part, in (0, 1).
    """
    return Laplace(queries * bound / (epsilon * (1 - test_share)))


BLOCK_SIZE = 32
"""Default number of people per block, approximately."""


def block_count(people: int, block_size: int = BLOCK_SIZE) -> int:
    """Return k, the public number of blocks, at least 1, for a smallest stratum of `people` people."""
    return max(1, people // block_size)


def aggregate_law(blocks: int, queries: int, epsilon: float) -> Laplace:
    """Return the noise on each model's mean over the blocks; public."""
    require_batch(queries, epsilon)
    return Laplace(queries / (blocks * epsilon))


def aggregate_loss(
    metric: str,
    n0: int,
    n1: int,
    queries: int,
    epsilon: float,
    block_size: int = BLOCK_SIZE,
    minimum_group: int = 1,
) -> float:
    """Return the privacy loss of `aggregate_law` for these counts, at the worst deal and predictions.

    For a metric with one part. At most epsilon; 0 where there are no neighbours. `minimum_group` says nothing about
    members of one block, and the noise does not depend on it.
    """
    blocks = block_count(n0 + n1, block_size)
    scale = aggregate_law(blocks, queries, epsilon).scale
    change = local_sensitivity(metric, n0, n1, minimum_group=minimum_group)
    if change == 0:
        return 0.0
    return queries * (change if blocks == 1 else 1 / blocks) / scale if scale else math.inf


def conceal_laplace_beta(queries: int, epsilon: float, delta: float) -> float:
    """Return the smoothness of Theorem 8: epsilon / (4 (m + ln(2/delta))), for 0 < delta < 1."""
    require_batch(queries, epsilon)
    if not 0 < delta < 1:
        raise ValueError("delta must be above 0 and below 1")
    return epsilon / (4 * (queries + math.log(2 / delta)))


def conceal_laplace_law(
    metric: str, n0: int, n1: int, queries: int, epsilon: float, delta: float, minimum_group: int = 1
) -> Laplace:
    """Return the noise of one query of a batch, for a metric with one stratum.

    The counts in it, each at least 1, are secret, and so is the scale. The budget is the whole batch's, epsilon in
    (0, 1) for the theorem as stated, delta in (0, 1).
    """
    beta = conceal_laplace_beta(queries, epsilon, delta)
    return Laplace(2 * queries * smooth_sensitivity(metric, n0, n1, beta, minimum_group=minimum_group) / epsilon)
