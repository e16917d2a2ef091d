"""Noise on counts and sums: all that a metric needs of A, at a sensitivity that no group size enters.

The developer knows the predictions v (or another public number of each person in [0, 1],
`fairwall.laws.metrics.metric.MetricPart`). Of A only N0, the number of disadvantaged people in the stratum, and the
sums over them are secret. A flip moves N0 by 1 and every centred sum

    nu = sum over a=0 of (v - 1/2)

by at most 1/2. So k sums and N0 are epsilon-private together with Laplace noise of scale 1/(w epsilon) on N0 and
k/2 / ((1-w) epsilon) on the sums, for any w: 1/(1/(w eps)) + k (1/2) / (k/2 / ((1-w) eps)) = eps. Without the centring
each sum would move by 1. Once N0 is bought, later batches spend everything on the sums. Two strata (equalized odds)
cost no more than one, for a flip touches one of them.

**The share w.** The error of a mean (nu + N0/2)/N0 is about |mean - 1/2| / N0 times N0's noise and 1/N0 times nu's.
With w = 1/(1 + sqrt(2 k)) both are of one size for |mean - 1/2| near 1/2, independently of A. For
Gaussian noise w is the share of the squared multiplier: 1/s0^2 + k (1/2)^2 / s1^2 = 1/r^2 with 1/s0^2 = w / r^2.

**Chance, and more than chance.** `expected_sums` is further post-processing. If A had nothing to do with predictions,
u = nu - N0 (T/n - 1/2), T the public total, would have mean 0 and the public variance of a sum over N0 people drawn
without replacement, t^2 = N0 N1 var(v) / (n - 1). A priori u ~ N(0, (q t)^2) for the whole batch: q = 1 (chance alone)
with odds k+1 to 1, else q one of `_SPREADS` numbers from 1 up to where a gap is 1. Given noise of a known distribution,
the batch decides for q, and the answer is the mean of u given the release, which lies between no gap and the released
number. The odds grow with k, since a wrong q errs k times. This is an assumption about data, not about privacy: where
it fails the answers are less exact, and as private.

For Laplace noise of scale b the density of x = u plus noise is, with A, B = (t/b -+ x/t) / sqrt(2),

    exp(-x^2 / (2 t^2)) (erfcx(A) + erfcx(B)) / (4b),

and u has given x the mean -t^2 (log density)' (Tweedie, with u as the Gaussian "noise"):

    t^2/b * (erfcx(A) - erfcx(B)) / (erfcx(A) + erfcx(B)).
"""

import math
from dataclasses import dataclass

import numpy as np

from fairwall.arrays import Floats
from fairwall.laws.mechanisms.calibration import require_batch

_SPREADS = 16


@dataclass(frozen=True)
class CountScales:
    """Scales of the noise on N0 (0 where it was bought before) and on each centred sum."""

    size: float
    sums: float


def share_of_size(sums: int) -> float:
    """Return the part of the budget that N0 gets beside `sums` sums: 1/(1 + sqrt(2 k))."""
    return 1 / (1 + math.sqrt(2 * sums))


def laplace_scales(sums: int, epsilon: float, *, size_known: bool = False, steps: float = 0.0) -> CountScales:
    """Return Laplace scales that make a batch of k sums of a stratum epsilon-private; epsilon infinite for no noise.

    `size_known`: N0 was released before. `steps`: how much rounding to a grid may enlarge two sums' distance of 1/2.
    """
    require_batch(sums, epsilon)
    share = 0.0 if size_known else share_of_size(sums)
    return CountScales(
        0.0 if size_known else 1 / (share * epsilon),
        sums * (0.5 + steps) / ((1 - share) * epsilon),
    )


def gaussian_scales(sums: int, multiplier: float, *, size_known: bool = False, steps: float = 0.0) -> CountScales:
    """Return standard deviations equivalent to one Gaussian of this multiplier. Arguments as of `laplace_scales`."""
    share = 0.0 if size_known else share_of_size(sums)
    return CountScales(
        0.0 if size_known else multiplier / math.sqrt(share),
        multiplier * math.sqrt(sums / (1 - share)) * (0.5 + steps),
    )


def counts_loss(sums: int, epsilon: float, *, size_known: bool = False, change: float = 0.5) -> float:
    """Return the privacy loss of `laplace_scales` for neighbours whose sums move by up to `change`, at any counts."""
    scales = laplace_scales(sums, epsilon, size_known=size_known)
    if math.isinf(epsilon):
        return math.inf
    return (0.0 if size_known else 1 / scales.size) + sums * change / scales.sums


@dataclass(frozen=True, eq=False)
class Totals:
    """Public totals, and mean squares around the mean, of each model's values over all n people, shape (k,)."""

    people: int
    total: Floats
    variance: Floats


def shrunk_sums(centred: Floats, size: float, totals: Totals, scale: float, *, gaussian: bool) -> Floats:
    """Return the mean of nu given the release, shape (k,): noisy sums moved towards independence of A and the values.

    `centred`: nu with noise, shape (k,). `size`: N0 as released, in 1 .. n-1. `scale`, `gaussian`: of the noise: its
    scale, and whether it is Gaussian rather than Laplace.
    """
    n = totals.people
    by_chance = size * (totals.total / n - 0.5)
    spread = np.sqrt(totals.variance * size * (n - size) / (n - 1))
    # A gap of 1 moves nu by N0 N1 / n.
    return by_chance + expected_sums(centred - by_chance, spread, size * (n - size) / n, scale, gaussian=gaussian)


def expected_sums(noisy: Floats, spread: Floats, widest: float, scale: float, *, gaussian: bool = False) -> Floats:
    """Return the mean of each u given the noisy ones.

    `noisy`, `spread`: u with noise, and the standard deviation of each by chance alone, shape (k,). `widest`: the
    largest standard deviation worth considering. `scale`, `gaussian`: of the noise, as of `shrunk_sums`; above 0.
    """
    # A constant prediction tells nothing of A: its u is 0.
    telling = spread > 0
    expected = np.zeros_like(noisy)
    if telling.any():
        expected[telling] = expected_in_batches(noisy[telling], spread[telling], widest, scale, gaussian=gaussian)
    return expected


def expected_in_batches(
    noisy: Floats, spread: Floats, widest: float | Floats, scale: float, *, gaussian: bool = False
) -> Floats:
    """Compute `expected_sums` for one batch or many: shape (..., k), `widest` (...), every spread above 0."""
    x, t = noisy, spread
    widen = np.maximum(2.0, widest / np.median(t, axis=-1))
    wider = np.geomspace(1.0, widen, _SPREADS + 1)[1:, ..., None] * t
    t = np.concatenate([t[None], wider])
    # A spread far below the noise would lose its digits below, and gives the same result as this one.
    t = np.maximum(t, 1e-3 * scale)
    log_density, mean = _normal(x, t, scale) if gaussian else _laplace(x, t, scale)
    odds = np.log([x.shape[-1] + 1.0, *np.full(_SPREADS, 1 / _SPREADS)])
    log_weight = odds.reshape(-1, *[1] * (x.ndim - 1)) + log_density.sum(axis=-1)
    weight = np.exp(log_weight - log_weight.max(axis=0))
    expected: Floats = np.add.reduce(weight[..., None] * mean, axis=0) / weight.sum(axis=0)[..., None]
    return expected


def _laplace(x: Floats, t: Floats, b: float) -> tuple[Floats, Floats]:
    near, far = _log_erfcx((t / b - np.abs(x) / t) / math.sqrt(2)), _log_erfcx((t / b + np.abs(x) / t) / math.sqrt(2))
    mean = np.sign(x) * t * t / b * np.tanh((near - far) / 2)
    # Noise below a ten-thousandth of the spread changes nothing, and the difference above would lose its digits.
    return -0.5 * (x / t) ** 2 + np.logaddexp(near, far), np.where(t > 1e4 * b, x, mean)


def _log_erfcx(z: Floats) -> Floats:
    from scipy.special import erfcx  # loading it takes most of a second

    # erfcx(z) = exp(z^2) erfc(z), where erfc is 2 to the last bit below -20.
    log: Floats = np.where(z < -20, z * z + math.log(2), np.log(erfcx(np.maximum(z, -20.0))))
    return log


def _normal(x: Floats, t: Floats, sigma: float) -> tuple[Floats, Floats]:
    variance = t * t + sigma * sigma
    return -0.5 * (np.log(variance) + x * x / variance), t * t / variance * x
