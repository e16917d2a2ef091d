"""Bound an answer to its metric's range: the effect on the answer's distribution, and on its price.

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

import math

from fairwall.laws.metric import find_metric

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
