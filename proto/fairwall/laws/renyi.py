"""Renyi divergences of single mechanisms at one order, and the privacy that a sum of them proves (Mironov, CSF 2017).

At an order a > 1 the divergences of answered questions add up, and a sum that never exceeds a limit proves it for
adaptively chosen questions too (a filter: Feldman and Zrnic, NeurIPS 2021, Theorem 4.3; Lecuyer 2021). The order has to
be fixed before the first question. With the sum r, a series is (epsilon, delta)-private for

    epsilon = r + ln((a-1)/a) - (ln delta + ln a) / (a-1)        (Canonne, Kamath, Steinke 2020, Proposition 12).

* A mechanism of which only epsilon is known has at most the divergence of randomised response, which dominates
  it: ln(q (e^(a epsilon) + e^((1-a) epsilon))) / (a-1) with q = 1/(1 + e^epsilon).
* Laplace noise of scale 1/epsilon on a sensitivity of 1 has
  ln(a/(2a-1) e^((a-1) epsilon) + (a-1)/(2a-1) e^(-a epsilon)) / (a-1)      (Mironov, Proposition 6).

Both are at most epsilon, and at most a epsilon^2 / 2 (Bun and Steinke, TCC 2016, Proposition 3.3), which is used for
tiny epsilons: the formulas above lose their digits there.
"""

import math
from functools import lru_cache

import numpy as np

_SMALL = 1e-3
_ROUNDED_UP = 1 + 1e-6
"""Margin for float64 errors of the formulas; measured 1e-8, at orders of `_ORDERS` and epsilons from `_SMALL` on."""

_ORDERS = tuple(1 + math.exp2(k / 8) for k in range(-48, 160))


def response_divergence(epsilon: float, order: float) -> float:
    """Return an upper bound of the divergence of any epsilon-private mechanism; infinite for an infinite epsilon."""
    if math.isinf(epsilon):
        return math.inf
    log = float(np.logaddexp(order * epsilon, (1 - order) * epsilon) - np.logaddexp(0.0, epsilon))
    return _bounded(epsilon, order, log)


def laplace_divergence(epsilon: float, order: float) -> float:
    """Return an upper bound of the divergence of Laplace noise of scale 1/epsilon, for a sensitivity of 1."""
    if math.isinf(epsilon):
        return math.inf
    up = math.log(order / (2 * order - 1)) + (order - 1) * epsilon
    down = math.log((order - 1) / (2 * order - 1)) - order * epsilon
    return _bounded(epsilon, order, float(np.logaddexp(up, down)))


def _bounded(epsilon: float, order: float, log: float) -> float:
    always = min(epsilon, order * epsilon * epsilon / 2)
    return always if epsilon < _SMALL else min(always, log / (order - 1) * _ROUNDED_UP)


def renyi_epsilon(divergence: float, order: float, delta: float) -> float:
    """Return the epsilon, at least 0, that a divergence at an order proves at a delta above 0."""
    lost = math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)
    return max(0.0, divergence + lost)


@lru_cache(maxsize=256)
def filter_order(epsilon: float, delta: float) -> float:
    """Return the order at which (epsilon, delta) has room for most small losses, each nearly a constant times it.

    Epsilon is the whole budget's, finite and above 0, and delta above 0 and below 1.
    """

    def room(order: float) -> float:
        return (epsilon - renyi_epsilon(0.0, order, delta)) / order

    return max(_ORDERS, key=room)
