"""Exact (epsilon, delta) of Gaussian noise (Balle and Wang, ICML 2018), and the effect of a grid.

**One number, or a vector.** Noise N(0, sigma^2) in every coordinate, l2 sensitivity D: the worst neighbours are D
apart, and the problem is rotated into one dimension. With the multiplier r = sigma/D the privacy loss is
N(1/(2 r^2), 1/r^2), so that the least delta at epsilon is (their Theorem 8)

    delta = Phi(1/(2r) - epsilon r) - exp(epsilon) Phi(-1/(2r) - epsilon r),

which falls in r; the smallest multiplier is found by bisection.

**On a grid** of step h the secret is rounded and the noise is discrete. Rounded N(0, sigma^2) would be post-processing
of the real noise. The discrete probability at z = k h / sigma differs from the rounded one's by a factor within
exp(+-(z^2 + 1) (h/sigma)^2 / 24 (1 + o(1))), before both are normalised. Up to |z| = 64, beyond which both have less
than 1e-880, that is at most exp(+-172 (h/sigma)^2), and `GRID_SLACK` is three times as much for each of two
neighbours: epsilon shrinks by slack * coordinates * (h/sigma)^2 before the multiplier is computed. With
h = sigma / 2^30 it is 1e-15 a coordinate.
"""

import math

from fairwall.laws.mechanisms.calibration import require_epsilon

GRID_SLACK = 1024.0
_BISECTIONS = 200
_EXPONENT_MAX = 700.0
_NARROW = 1e-3
"""Bound up to which two terms of the series of Phi's difference suffice, to a relative 1e-12."""


def gaussian_delta(multiplier: float, epsilon: float) -> float:
    """Return the least delta of Gaussian noise at an epsilon of at least 0.

    The multiplier is its standard deviation over the l2 sensitivity, above 0.
    """
    from scipy.special import log_ndtr, ndtr  # loading it takes most of a second

    half, reach = 0.5 / multiplier, epsilon * multiplier
    if half * (1 + reach) < _NARROW:
        # Phi's values here differ only beyond float64's digits: their difference is an integral of phi.
        density = math.exp(-(reach**2) / 2) / math.sqrt(2 * math.pi)
        between = 2 * half * density * (1 + (reach**2 - 1) * half**2 / 6)
        return max(0.0, between - math.expm1(epsilon) * float(ndtr(-half - reach)))
    kept, lost = float(log_ndtr(half - reach)), epsilon + float(log_ndtr(-half - reach))
    return -math.exp(kept) * math.expm1(lost - kept) if lost < kept else 0.0


def gaussian_epsilon(multiplier: float, delta: float) -> float:
    """Return the least epsilon of Gaussian noise at a delta above 0 and below 1; see `gaussian_delta`."""
    low, high = 0.0, 1.0
    while gaussian_delta(multiplier, high) > delta:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if gaussian_delta(multiplier, middle) <= delta else (middle, high)
    return high


def gaussian_multiplier(epsilon: float, delta: float) -> float:
    """Return the least standard deviation, for an l2 sensitivity of 1, that is (epsilon, delta)-private.

    ValueError unless epsilon is above 0, infinite for no noise, and delta above 0 and below 1.
    """
    require_epsilon(epsilon)
    if not 0 < delta < 1:
        raise ValueError("delta must be above 0 and below 1")
    if math.isinf(epsilon):
        return 0.0
    low, high = 0.0, 1.0
    while gaussian_delta(high, epsilon) > delta:
        low, high = high, 2 * high
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if gaussian_delta(middle, epsilon) <= delta else (middle, high)
    return high


def pure_shift(epsilon: float) -> float:
    """Return the least mu for which N(0, 1) and N(mu, 1) dominate any epsilon-private pair.

    Randomised response dominates it (Kairouz, Oh, Viswanath 2015), and is the sign of such a normal number measured
    from the middle: its larger probability is e^epsilon / (1 + e^epsilon) = Phi(mu/2). So epsilon-privacy implies
    mu-Gaussian differential privacy (Dong, Roth, Su 2022), for no smaller mu in general. About 1.25 epsilon.
    """
    from scipy.special import erfinv, ndtri

    if epsilon > 1:
        return -2 * float(ndtri(1 / (1 + math.exp(epsilon)))) if epsilon < _EXPONENT_MAX else math.inf
    # Phi^-1(1/2 + x) = sqrt(2) erfinv(2 x) keeps the digits of a small x.
    return 2 * math.sqrt(2) * float(erfinv(math.tanh(epsilon / 2)))


def gridded_multiplier(epsilon: float, delta: float, coordinates: int, steps: float) -> float:
    """Return the multiplier for discrete Gaussian noise in some coordinates; sigma is at least `steps` grid steps.

    ValueError where the grid is too coarse for so small an epsilon.
    """
    slack = GRID_SLACK * coordinates / steps**2
    if slack > epsilon / 2:
        raise ValueError("the grid is too coarse for so small an epsilon")
    return gaussian_multiplier(epsilon - slack, delta)
