r"""The distribution of an answer's error from public parameters, and the posterior of a number given an answer.

**Errors.** Mechanisms are public (Kerckhoffs), and so are their distributions in `fairwall.laws`; where one depends on
the secret sizes it is computed for assumed ones, so that a decoder may weigh sizes too (`size_weights`). Steps of grids
are 2^-20 of a scale and are left out.

**Through a Gaussian.** Decoders know a gap only up to a Gaussian spread of variance tau (`smeared`): the density of the
difference r of answer and expected gap is p = law * N(0, tau). They need g = -(ln p)' and h = -(ln p)''.

* Gaussian: g = r/(s^2 + tau), h = 1/(s^2 + tau).
* Cauchy of scale s: p = Re w(z) / sqrt(2 pi tau), z = (r + i s)/sqrt(2 tau), the Voigt profile, where Faddeeva's w has
  w' = -2 z w + 2i/sqrt(pi) and w'' = -2 w - 2 z w'. g is bounded and falls like 2/r.
* Laplace of scale b: p = exp(-r^2/(2 tau)) (E(A) + E(B)) / (4 b), E = erfcx, A, B = (t/b -+ r/t)/sqrt(2), t^2 = tau. As
  the Laplace density L satisfies b^2 L'' = L - (point mass at 0), b^2 p'' = p - N(r; tau). By Tweedie's formula
  g = (E(A) - E(B)) / (b (E(A) + E(B))).
* Uniform on [-a, a]: p = (Phi(u) - Phi(l)) / (2a), u, l = (r +- a)/t.
* One coordinate of a cube, f = Q(d, |x|/s) / (2 d s). Where t is not small beside the spread of its size T, a mixture:
  uniform on [-T, T], T Gamma(d+1), at some of its quantiles. Else f at points around r, by Gauss and Hermite: with y =
  |x|/s and the hazard k = y^(d-1) e^-y / (Gamma(d) Q(d, y)) it has g = sign(x) k/s, h = k (k - 1 + (d-1)/y) / s^2.
  With the share pi_k of p in each part g = sum pi_k g_k, and as p'' = p (g^2 - h), h = g^2 - sum pi_k (g_k^2 - h_k).
  A staircase likewise is a mixture of few sizes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from developer.reveal.decode.decoder import DecoderInputs
from fairwall.arrays import Bytes, Floats
from fairwall.laws.mechanisms.table import MECHANISM_LAWS, NoiseInputs
from fairwall.laws.metrics.answer_precision import rounding_law
from fairwall.laws.metrics.group_size_range import DEFAULT_SHARES
from fairwall.laws.metrics.metric import find_metric
from fairwall.laws.noise.distributions import Cauchy, Gaussian, Laplace, NoiseDistribution, Uniform
from fairwall.laws.noise.linf_ball import CubeNoise, coordinates
from fairwall.laws.noise.randomized_response import turning_probability

if TYPE_CHECKING:
    from developer.reveal.strategies.strategy import PublicTerms

Smeared = tuple[Floats, Floats, Floats]

_FLAT = 1e-4
"""Width of noise, as a part of the spread, below which it counts as Gaussian: exact formulas would lose their digits.
"""

_EXACT = 1e-9
"""Error assumed for an exact answer."""

_UNHEARD_OF = 1e100
"""Differences are clipped here, so that their squares are finite."""

_SIZES = np.array([0.0, 1e-6, 1e-4, 0.01, *np.linspace(0.05, 0.95, 10).tolist(), 0.99, 1 - 1e-4, 1 - 1e-6, 1.0])
"""The quantiles of a cube's size T between which T is replaced by one number."""

_NARROW_BESIDE_SIZES, _POINTS = 0.5, 32
"""Spread, relative to that of T, below which points around r are used instead of sizes; and the number of points."""

_FAR = 50.0
"""Distance, in units of the spread, beyond which a Cauchy distribution ignores the spread."""


def law_of(terms: PublicTerms, *, n0: int, n1: int, queries: int, epsilon: float) -> NoiseDistribution | None:
    """Return the distribution of a gap's error in a batch; None for exact answers, among which float32 counts.

    It comes from `fairwall.laws.mechanisms.table`. The sizes used by `counts` are found by `counts_size`; answers of
    `randomized-response` are read as gaps of the noisy attributes (`noisy_attributes`). A metric of several parts is no
    difference of two means: the distribution of one absolute gap is used in its place. n0 and n1 are assumed sizes in
    the metric's stratum, at least 1; epsilon is the batch's, and may be infinite (`terms.epsilon` is not used).
    """
    metric, noise = terms.metric if len(find_metric(terms.metric).parts) == 1 else "abs_sp", None
    if not math.isinf(epsilon):
        if terms.mechanism not in MECHANISM_LAWS:
            raise ValueError(f"unknown mechanism {terms.mechanism!r}")
        batch = NoiseInputs(metric, n0, n1, queries, epsilon, terms.delta, size_known=not terms.first)
        noise = MECHANISM_LAWS[terms.mechanism].error(batch)
    return rounding_law(terms.precision) if noise is None and isinstance(terms.precision, int) else noise


def size_prior(n: int) -> Floats:
    """Return the weights of N0 = 1 .. n-1, (n-1,): 1/N0, uniform in ln N0, over the public range of shares.

    That the disadvantaged are a minority of more than a few is public policy, and reads no A. Without this prior a
    target's attribute could be decided no better than by the sign of an answer.
    """
    size = np.arange(1, n)
    inside = (size >= math.floor(DEFAULT_SHARES.low * n)) & (size <= math.ceil(DEFAULT_SHARES.high * n))
    weights: Floats = inside / size
    weights /= weights.sum()
    return weights


def told_by_size(terms: PublicTerms, size_answer: float | None, n: int, epsilon: float) -> Floats:
    """Return log-weights of N0 = 1 .. n-1, (n-1,), given the size query's answer and, under noise, `size_prior`.

    The query accepts one of n people alone: its gap is 1/N1 with probability N1/n and -1/N0 else. Weights are -inf
    where the prior is 0. A public n0 gets all the weight; only then `size_answer` may be None. `epsilon` is the size
    query's.
    """
    if terms.n0 is not None:
        return np.where(np.arange(1, n) == terms.n0, 0.0, -np.inf)
    if size_answer is None:
        raise ValueError("sizes are either public or asked for")
    without_noise = law_of(terms, n0=1, n1=n - 1, queries=1, epsilon=epsilon) is None
    prior = np.ones(n - 1) if without_noise else size_prior(n)
    weights = np.full(n - 1, -np.inf)
    for n0 in np.flatnonzero(prior) + 1:
        n1 = n - int(n0)
        law = law_of(terms, n0=int(n0), n1=n1, queries=1, epsilon=epsilon) or Gaussian(_EXACT)
        # A little spread, so that the error of a rounded answer may lie at the end of its interval.
        away = np.array([size_answer - 1 / n1, size_answer + 1 / n0])
        own, other = smeared(law, away, np.full(2, _EXACT**2))[0]
        weights[n0 - 1] = math.log(prior[n0 - 1]) + np.logaddexp(own + math.log(n1), other + math.log(n0))
    return weights


def size_weights(terms: PublicTerms, log_weights: Floats, rows: Floats, gaps: Floats, epsilon: float) -> Floats:
    """Return weights of N0 = 1 .. n-1, (n-1,) with sum 1, given the size query's and the batch's answers.

    For randomly assigned attributes a row's gap has mean 0 and variance (1/N0 + 1/N1) n var(h) / (n - 1), and is nearly
    Gaussian. Rows count as independent. `log_weights` are from `told_by_size`; `epsilon` is the batch's.
    """
    n = rows.shape[1]
    spread = n / max(n - 1, 1) * rows.var(axis=1)
    weights = log_weights.copy()
    for n0 in np.flatnonzero(np.isfinite(log_weights)) + 1:
        n1 = n - int(n0)
        law = law_of(terms, n0=int(n0), n1=n1, queries=len(rows), epsilon=epsilon) or Gaussian(0.0)
        weights[n0 - 1] += smeared(law, gaps, np.maximum((1 / n0 + 1 / n1) * spread, _EXACT**2))[0].sum()
    likely: Floats = np.exp(weights - weights.max())
    likely /= likely.sum()
    return likely


def counts_size(n: int, rows: Floats, gaps: Floats, scale: float) -> int:
    """Return the N0, 1 to n-1, from which noisy counts were computed: public information, but never stated.

    An answer is T/n1 - (1/n0 + 1/n1) s, T the row's total and s the noisy sum. Unless s was clipped it lies on a grid,
    a power of two near 2^-20 of the noise's scale, for Gaussian noise 2^-30 (n0/2 is on it too). So for the right n0
    nearly all s are on the grid; for a wrong one they lie anywhere between. Without answers it is n // 2. `scale` is
    that of the noise on a sum, from `fairwall.laws.noise.count_noise`.
    """
    if not len(gaps):
        return n // 2
    step = max(2.0 ** (math.ceil(math.log2(n)) - 44), 2.0 ** (math.frexp(scale)[1] - 32))
    n0 = np.arange(1, n)[:, None]
    sums = (rows.sum(axis=1) / (n - n0) - gaps) / (1 / n0 + 1 / (n - n0))
    off = np.abs(sums / step - np.rint(sums / step))
    return int(np.argmin(np.median(off, axis=1))) + 1


def with_public_size(terms: PublicTerms, rows: Floats, gaps: Floats, n0: int) -> tuple[Floats, int]:
    """Return gaps, (m,), recomputed with the public N0 where there is one, and the N0 they now go with.

    A gap computed with a noisy N0 stands for the sum s = (T/n1 - gap) / (1/n0 + 1/n1), and the released number is s -
    N0/2 (`fairwall.laws.noise.count_noise`): with a public N0 the noise of N0 drops out.
    """
    if terms.n0 in (None, n0):
        return gaps, n0
    n, total, public = rows.shape[1], rows.sum(axis=1), terms.n0
    assert public is not None, "else the size stays"
    sums = (total / (n - n0) - gaps) / (1 / n0 + 1 / (n - n0)) + (public - n0) / 2
    return total / (n - public) - sums * (1 / public + 1 / (n - public)), public


def cube_rows(n: int, rows: Floats, gaps: Floats, epsilon: float) -> tuple[Floats, Floats, int]:
    """Return the distinct rows of a `cube` batch, (d, n), widened to [0, 1], with gaps, (d,), and the batch's N0.

    The noise is proportional to a row's range. For the noise of the result, call `law_of` with a batch of d; N0 is
    found by `counts_size`.
    """
    told = coordinates([rows], 2.0**-24)
    place, first = np.unique(told.place, return_index=True)
    first = first[place >= 0]
    wide = 2 * told.halves[first]
    own = 0.5 + (rows[first] - told.centres[first, np.newaxis]) / wide[:, np.newaxis]
    # The grid of these sums is half of the cube's, 2^-25 of 1/epsilon.
    return own, gaps[first] / wide, counts_size(n, own, gaps[first] / wide, 64 / epsilon)


def noisy_attributes(n: int, size_answer: float, gaps: Floats, epsilon: float) -> tuple[int, int, Floats]:
    """Return N0, N1 and the exact gaps, (m,), of the noisy attributes from answers of randomised response.

    Let N1' people have a noisy attribute of 1. By the estimates of `fairwall.laws.noise.randomized_response`, unless
    clipped to the possible range,

        gap = -n / (n0 n1 (1 - 2p)) (h - mean h) z',    n1 = (N1' - n p)/(1 - 2p),    n0 = n - n1,

    where z' is 1 for the n - N1' people with a noisy attribute of 0. So it is a constant times the gap of the noisy
    attributes. The size query's own sum (of a row that accepts one person only) is clipped, so that its gap is 1/n1 or
    -1/n0, which determines N1'. Both sizes returned are at least 1; `epsilon` is that of the account's first batch.
    """
    p = turning_probability(epsilon)
    kept = max(1 - 2 * p, 2.0**-52)
    noisy = np.arange(1, n)
    n1 = np.clip((noisy - n * p) / kept, 1, n - 1)
    away = np.minimum(np.abs(size_answer - 1 / n1), np.abs(size_answer + 1 / (n - n1)))
    ones = int(noisy[np.argmin(away)])
    return n - ones, ones, noisy_gaps(n, ones, gaps, epsilon)


def noisy_gaps(n: int, ones: int, gaps: Floats, epsilon: float) -> Floats:
    """Return the gaps of the noisy attributes, (m,), of which `ones` are 1; see `noisy_attributes`."""
    p = turning_probability(epsilon)
    kept = max(1 - 2 * p, 2.0**-52)
    n1 = min(max((ones - n * p) / kept, 1.0), n - 1.0)
    return gaps * kept * float(n1 * (n - n1)) / (ones * (n - ones))


def noisy_size_weights(n: int, n0: int, seen: Floats, epsilon: float) -> Floats:
    """Return log-weights, (n-1,), of the number of noisy attributes that are 1, for a public N0 and no size query.

    Of N1 people each stays at 1 with probability 1-p, of N0 each is turned to 1 with p: nearly a Gaussian. So is the
    sum of a unit row without a mean over k noisy zeros placed at random, with variance k (n-k) / (n (n-1)); the
    answered gap is that sum times a factor that depends on k. `seen` are the gaps, (m,), of rows made orthonormal and
    without means; `epsilon` is that of the account's first batch.
    """
    p = turning_probability(epsilon)
    ones = np.arange(1, n)
    expected, variance = (n - n0) + (2 * n0 - n) * p, n * p * (1 - p) + 0.1  # a tenth: where nobody is turned over
    kept = max(1 - 2 * p, 2.0**-52)
    n1 = np.clip((ones - n * p) / kept, 1, n - 1)
    factor = kept * n1 * (n - n1) / n
    spread = ones * (n - ones) / (n * max(n - 1, 1))
    fit = np.square(factor) * float(seen @ seen) / spread + len(seen) * np.log(spread / np.square(factor))
    weights: Floats = -0.5 * (np.square(ones - expected) / variance + fit)
    return weights


def smeared(law: NoiseDistribution, r: Floats, variance: Floats) -> Smeared:
    """Return ln p, g and h (see the module's docstring) at each r, (m,), for the variance tau > 0, (m,).

    Any distribution not listed there counts as a Gaussian of the same median.
    """
    t, r = np.sqrt(variance), np.clip(r, -_UNHEARD_OF, _UNHEARD_OF)
    if isinstance(law, (Laplace, Uniform)):
        flat = law.scale < _FLAT * t
        sigma = law.scale * (math.sqrt(2) if isinstance(law, Laplace) else math.sqrt(1 / 3))
        plain = _gaussian(r, variance + sigma**2)
        if flat.all():
            return plain
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            full = _laplace(r, t, law.scale) if isinstance(law, Laplace) else _uniform(r, t, law.scale)
        a, b, c = (np.where(flat | ~np.isfinite(x), y, x) for x, y in zip(full, plain, strict=True))
        return a, b, c
    if isinstance(law, Cauchy) and law.scale > 0:
        return _cauchy(r, t, law.scale)
    if isinstance(law, CubeNoise) and law.scale > 0:
        return _cube(r, variance, law)
    sigma = law.scale if isinstance(law, (Gaussian, Cauchy)) else law.median_abs() / Gaussian(1.0).median_abs()
    return _gaussian(r, variance + sigma**2)


def likelihood(evidence: DecoderInputs, guess: Bytes) -> float:
    """Return the answers' log-likelihood if a guess, (n,), is right."""
    v = np.where(guess == 1, 1 / evidence.n1, -1 / evidence.n0)
    missed = evidence.gaps - evidence.rows @ v
    return float(smeared(evidence.noise or Gaussian(0.0), missed, np.full(len(missed), _EXACT**2))[0].sum())


def _gaussian(r: Floats, variance: Floats) -> Smeared:
    return -0.5 * (r * r / variance + np.log(2 * math.pi * variance)), r / variance, 1 / variance


def _cauchy(r: Floats, t: Floats, scale: float) -> Smeared:
    from scipy.special import wofz

    z = (r + 1j * scale) / (math.sqrt(2) * t)
    far = np.abs(z) > _FAR
    z = np.where(far, _FAR, z)
    w = wofz(z)
    first = -2 * z * w + 2j / math.sqrt(math.pi)
    second = -2 * w - 2 * z * first
    density = np.maximum(w.real, 1e-300)
    g = -first.real / density / (math.sqrt(2) * t)
    h = g * g - second.real / density / (2 * t * t)
    square = r * r + scale * scale
    return (
        np.where(far, np.log(scale / (math.pi * square)), np.log(density / (math.sqrt(2 * math.pi) * t))),
        np.where(far, 2 * r / square, g),
        np.where(far, 2 * (scale * scale - r * r) / square / square, h),
    )


def _laplace(r: Floats, t: Floats, b: float) -> Smeared:
    near, far = _log_erfcx((t / b - np.abs(r) / t) / math.sqrt(2)), _log_erfcx((t / b + np.abs(r) / t) / math.sqrt(2))
    total = np.logaddexp(near, far)
    g = np.sign(r) * np.tanh((near - far) / 2) / b
    centre = np.exp(math.log(4 * b) - 0.5 * math.log(2 * math.pi) - np.log(t) - total)
    return -0.5 * (r / t) ** 2 + total - math.log(4 * b), g, g * g - (1 - centre) / b**2


def _log_erfcx(z: Floats) -> Floats:
    from scipy.special import erfcx

    # erfcx(z) = exp(z^2) erfc(z), where erfc is 2 to the last bit below -20.
    log: Floats = np.where(z < -20, z * z + math.log(2), np.log(erfcx(np.maximum(z, -20.0))))
    return log


def _cube(r: Floats, variance: Floats, law: CubeNoise) -> Smeared:
    if law.stair:
        return _cube_by_sizes(r, variance, law)
    if law.sides == 1:
        return smeared(Laplace(law.scale), r, variance)
    wide = np.sqrt(variance) > _NARROW_BESIDE_SIZES * law.scale * math.sqrt(law.sides)
    found = np.empty((3, r.size))
    if wide.any():
        found[:, wide] = _cube_by_sizes(r[wide], variance[wide], law)
    if not wide.all():
        found[:, ~wide] = _cube_by_points(r[~wide], variance[~wide], law)
    return found[0], found[1], found[2]


def _cube_by_sizes(r: Floats, variance: Floats, law: CubeNoise) -> Smeared:
    sizes, weights = law.sizes(_SIZES)
    parts = [smeared(Uniform(float(size)), r, variance) for size in sizes]
    logs, g, h = (np.array(of) for of in zip(*parts, strict=True))
    return _mixed(logs + np.log(weights)[:, np.newaxis], g, h)


def _cube_by_points(r: Floats, variance: Floats, law: CubeNoise) -> Smeared:
    from scipy.special import gammaln

    points, weights = np.polynomial.hermite_e.hermegauss(_POINTS)
    x = r + points[:, np.newaxis] * np.sqrt(variance)
    y, d = np.maximum(np.abs(x) / law.scale, 1e-9), law.sides
    logs = law.log_density(x)
    hazard = np.exp((d - 1) * np.log(y) - y - gammaln(d) - (logs + math.log(2 * d * law.scale)))
    g, h = np.sign(x) * hazard / law.scale, hazard * (hazard - 1 + (d - 1) / y) / law.scale**2
    return _mixed(logs + np.log(weights / weights.sum())[:, np.newaxis], g, h)


def _mixed(logs: Floats, g: Floats, h: Floats) -> Smeared:
    """Return ln p, g and h of a mixture of parts, (parts, m), whose log-weights are added to the log-densities."""
    total = np.logaddexp.reduce(logs)
    share = np.exp(logs - total)
    slope = (share * g).sum(axis=0)
    return total, slope, slope**2 - (share * (g**2 - h)).sum(axis=0)


def _uniform(r: Floats, t: Floats, a: float) -> Smeared:
    from scipy.special import log_ndtr

    # By symmetry for r >= 0, where the tails to the right keep their digits.
    u, low = (np.abs(r) + a) / t, (np.abs(r) - a) / t
    tail = log_ndtr(-low)
    inside = tail + np.log1p(-np.exp(log_ndtr(-u) - tail))
    at_u, at_low = (np.exp(-0.5 * x * x - 0.5 * math.log(2 * math.pi) - inside) for x in (u, low))
    g = (at_low - at_u) / t
    return inside - math.log(2 * a), np.sign(r) * g, g * g + (u * at_u - low * at_low) / t**2
