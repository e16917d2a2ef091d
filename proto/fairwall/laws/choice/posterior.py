"""The gaps of a whole batch, given noisy sums over the disadvantaged people and the predictions.

**Setting.** Among n people z_i is 1 for a disadvantaged one, else 0. Each row of X, shape (m, n), is a model's values
less their mean. u = X z and N0 = sum z determine the gaps: the disadvantaged add up to N0 mean + u, hence

    gap = (n mean - N0 mean - u)/N1 - (N0 mean + u)/N0 = -u n / (N0 N1).

Released are linear functions of z with noise: y = S z + e, E e = 0, Cov e = R. S and R are public, as X is.

**A prior on z, given X.** Mean s 1 and covariance s(1-s) K with K = I + tau Y'Y, where Y = (X X')^(-q/2) X. For tau = 0
people are disadvantaged independently of each other and of the predictions, with probability s: only chance makes
gaps. For tau > 0 a part of z follows a random combination of the models, z = s + sqrt(s(1-s)) (i.i.d. + sqrt(tau) Y'
w): models that agree have gaps that agree. With X X' = U diag(l) U', u then has the covariance

    s(1-s) U diag(l + tau l^(2-q)) U',

so that of its components U'u those that the models share most have the largest gaps: in proportion to the square of l
for q = 0, evenly with chance for q = 1. What tau adds to the gaps has a mean square of

    (n / (N0 N1))^2 s(1-s) tau sum(l^(2-q)) / m  =  tau sum(l^(2-q)) / (m s(1-s) n^2).

tau_1 is the tau for which that is `DEVIATION`^2.

**The answer** is the best linear one, which for Gaussian z and e is the posterior mean:

    u = s(1-s) X K S' M^-1 (y - s S 1),    M = s(1-s) S K S' + R,

with the posterior covariance s(1-s) X K X' - s^2(1-s)^2 X K S' M^-1 S K X'. K is never formed by itself. With C =
U'X S', X K S' = U diag(1 + tau l^(1-q)) C and S K S' = S S' + tau C' diag(l^-q) C. So nothing of size n x n is formed.
The answers for several q and tau (`STRUCTURES`) are averaged by the density of y under each, N(y; s S 1, M): the batch
itself decides how much it has in common. On real tables q = 1/2 and 1 fit better than q = 0 as often as not, and
intervals without them are too narrow.

**The unbiased answer**, without any prior expectation of z, is

    u0 = c s(1-s) X S' (c s(1-s) S S' + R)^-1 (y - s S 1),    with a large c, `FLAT`:

the best linear unbiased answer, except for what no sum sees. The prior moves it, and where the prior is wrong that is
an error which noise does not explain. `Posterior.near` keeps an answer within `FARTHEST` deviations of u0's noise.
Except for what no sum sees, its root mean square error is then at most 1 + `FARTHEST` times u0's, for any A.

**Uncertainty.** The prior mostly reduces errors, and increases them where it is wrong. So with probability `DOUBTED`
it is taken to say nothing of what the sums see: u then scatters about u0 with u0's noise. Otherwise u scatters about
the mean of one of the structures, with its posterior covariance. Either way there is what no sum sees. Were the sums
exact, u would have the covariance

    s(1-s) (X K X' - X K S' (S K S')^-1 S K X'),

which relies on the prior alone for how z goes with X among people whom no sum tells apart. More may hide there: of the
residual of X after the sums, A = X X' - X S' (S S')^-1 S X', the leading component, d with the eigenvalue a, is a
weight w for each person, and z may go with it: the less, the more other directions there are, r of them in all. The
correlation is taken to be `HIDDEN` r^(-1/3). As u = (A d / a) w'z, that adds

    `HIDDEN`^2 r^(-2/3) n s(1-s) a d d'.

A model may also be unlike all others, as one version among many that gives a group's people more: where A_jj is above
`UNLIKE` times the median, as much may hide in the excess as in the median model: `HIDDEN`^2 n s(1-s) (A_jj - median).
And intervals of m models must hold for the worst one, of which chance may be larger than of most: s(1-s) A_jj is added
`CHANCES` times more, and one person's variance, 1, or A_jj where that is less. As far as models agree in their
residuals, what hides there agrees too: with b_j the sum of these three, that adds A_jk sqrt(b_j b_k / (A_jj A_kk)).

Intervals are quantiles of this mixture, not multiples of its deviation: an unlikely component takes no more than its
part of the error probability.

**Free directions.** Where a sum was bought because the prior may be wrong about it
(`fairwall.laws.choice.cell_partition`), z gets an additional term W g, with independent g. Its size is averaged over as
q and tau are, with the parts of `LOOSE` of the largest expected. That is as if u had as many components more, with a
variance of their own: with F = S W, C becomes (C, F') and X K S' becomes U diag(1 + tau l^(1-q)) C + X W Var(g) F'.

This is an assumption about data, not about privacy: where it fails answers err more and are as private. They are moved
towards no gap as far as the noise hides them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from fairwall.arrays import Floats

DEVIATION = 0.05
"""Standard deviation of a gap besides chance for tau_1."""

STRUCTURES = ((0.0, 0.0), (0.0, 1.0), (0.0, 16.0), (0.0, 144.0), (0.5, 1.0), (0.5, 16.0), (1.0, 1.0), (1.0, 16.0))
"""Pairs of q, and tau in multiples of tau_1, averaged over: chance alone, and deviations of 0.05, 0.2 and 0.6 besides.

Gaps of 0.6 only with q = 0, shared by all models: with a larger q what hides in one model would be read as such a gap.

A priori chance is m times as likely as all others together, up to `CHANCE` times: noise must not be read as structure,
and a wrong structure errs m times. More would shrink answers about real gaps at a small epsilon.
"""

CHANCE = 10

DOUBTED = 0.35
"""Probability that the prior says nothing of what the sums see.

At least 1 - .05 / .35 = 86% of intervals then hold where it says nothing. With 0.2 intervals of real decisions are 2%
narrower, and with 0 too few hold in the worst shapes (`benchmarks/shapes.py`).
"""

HIDDEN = 0.65
"""Standard deviation of the correlation of z with the models' residuals after the sums, for a single direction.

With 0.22 for every r likely intervals of 25 models are the same; but of five models about three clusters of 300 people,
in each of which the score alone tells the group, 67% hold then, and 88% now (`benchmarks/shapes.py`).
"""

UNLIKE = 1.5
"""Ratio of a model's residual to the median model's above which the model counts as unlike the others.

With 1 half of all models are unlike the others, and intervals of real decisions widen by two thirds; with 2 one version
among 25, with .12 more for 7 people of 100, is like them, and its interval holds in 5% of draws.
"""

CHANCES = 1.0
"""Multiples of chance added to the uncertainty of what no sum sees of a model.

What hides there does not change from draw to draw: of 25 models one has a chance of two deviations. With 0 the worst
model's interval holds in 79% of draws where models differ about five people each; with 2 intervals of 100 real models
are 1.2 times as wide as with 0.
"""

PERSON = 1.0
"""Variance added where more than this of a person is unseen: each person moves a small group."""

FARTHEST = 0.6
"""Most deviations of u0's noise by which the prior moves an answer.

With less, answers err less where gaps are not as the prior has them: of five models at epsilon 1, where the others
alone score high at times, they err 2.2 times as much as a cube's without a limit, 1.9 times with 1 and 1.7 times with
0.7. But of 25 models that share nothing they err more, as the noise is all that is left: by 8% with 1, and by 11% with
0.7. With 0.4 the errors of 25 real models are 10% larger than with 0.6, and the worst model's interval holds in 78% of
draws where it holds in 72% (`benchmarks/shapes.py`, `benchmarks/batch_error.py`, 40 draws and fewer).
"""

LOOSE = ((0.0, 0.45), (0.3, 0.2), (1.0, 0.2), (3.0, 0.15))
"""Pairs of a free direction's size, in multiples of its standard deviation, and its prior probability.

The measurement decides among them. With the full size always, a measured sum's noise would be taken for its value;
with none larger, the worst interval of models within three clusters would hold in 74% of draws where it holds in 86%
(`benchmarks/shapes.py`).
"""

FLAT = 1e4
"""Multiple c of chance's variance that makes a prior flat: so large that noise alone decides."""

_DIRECTION_MIN = 1e-10
"""Eigenvalue, relative to the largest, below which a component is a rounding error."""

_NOISE_MIN = 1e-9
"""Negligible noise, relative to the mean square of the sums' rows."""

_TINY = 1e-200
"""Least variance."""

_STEPS = 40
"""Most iterations for the end of an interval; Newton's method mostly needs two or three."""

_NEAR = 1e-10
"""Tolerance of an interval's probability."""

SHARE = 0.2
"""Share of disadvantaged people for which errors are predicted: inside the usual range, and public."""


@dataclass(frozen=True, eq=False)
class NoisyObservations:
    """Released numbers y = S z + noise, with the products of S that answers about X need.

    Parameters
    ----------
    values : y, shape (k,).
    ones : S 1, each number's value if everybody were disadvantaged, shape (k,).
    gram : S S', shape (k, k).
    cross : X S', shape (m, k).
    noise : the covariance of the noise, shape (k, k), or its diagonal, shape (k,).
    free : directions about which the prior says nothing.
    """

    values: Floats
    ones: Floats
    gram: Floats
    cross: Floats
    noise: Floats
    free: Free | None = None


@dataclass(frozen=True, eq=False)
class Free:
    """Directions W, shape (n, d), in which z varies additionally: z gets W g, with independent g.

    `seen`: S W, shape (k, d). `effects`: X W, shape (m, d). `variances`: of g, shape (d,).
    """

    seen: Floats
    effects: Floats
    variances: Floats


@dataclass(frozen=True, eq=False)
class Posterior:
    """The posterior of u: an answer, and a mixture of normal distributions.

    Parameters
    ----------
    mean : the answer, shape (m,).
    alone, noise : u0, and the deviation of its noise, shape (m,).
    directions : U, shape (m, r).
    likely : the probability of each distribution, shape (laws,).
    components : the mean of U'u by each distribution, shape (laws, r).
    covariances : of U'u by each distribution, shape (laws, r, r).
    """

    mean: Floats
    alone: Floats
    noise: Floats
    directions: Floats
    likely: Floats
    components: Floats
    covariances: Floats

    def within(self, level: float, besides: Floats | float = 0.0, combinations: Floats | None = None) -> Floats:
        """Return the half-width about the mean that holds each u with probability `level`, shape (..., m).

        Or combinations of them, shape (p, m). `besides` is the variance of errors independent of u, (..., m).
        """
        from scipy.special import ndtr, ndtri

        off, variances = self._off, self._variances
        if combinations is not None:
            off, variances = combinations @ off, self._variances_of(combinations @ self.directions)
        deviations = np.sqrt(np.maximum(variances + np.expand_dims(besides, -1), _TINY))
        of_one = float(ndtri((1 + level) / 2))
        high = (np.abs(off) + of_one * deviations).max(axis=-1)
        low, reach = np.zeros_like(high), of_one * np.sqrt((off**2 + deviations**2) @ self.likely)
        for _ in range(_STEPS):
            above, below = ((side * reach[..., np.newaxis] - off) / deviations for side in (1, -1))
            more = (ndtr(above) - ndtr(below)) @ self.likely - level
            if (np.abs(more) < _NEAR).all():
                break
            low, high = np.where(more < 0, reach, low), np.where(more < 0, high, reach)
            density = (np.exp(-(above**2) / 2) + np.exp(-(below**2) / 2)) / (math.sqrt(2 * math.pi) * deviations)
            newton = reach - more / np.maximum(density @ self.likely, _TINY)
            reach = np.where((low <= newton) & (newton <= high), newton, (low + high) / 2)
        return np.asarray(reach)

    def near(self) -> Posterior:
        """Return the posterior with the answer moved to within `FARTHEST` deviations of u0."""
        reach = FARTHEST * self.noise
        return replace(self, mean=np.clip(self.mean, self.alone - reach, self.alone + reach))

    @cached_property
    def _variances(self) -> Floats:
        """The variance of each u by each distribution, shape (m, laws)."""
        return self._variances_of(self.directions)

    def _variances_of(self, rows: Floats) -> Floats:
        return np.stack([np.einsum("ij,ij->i", rows @ each, rows) for each in self.covariances], axis=1)

    @property
    def _off(self) -> Floats:
        """The distance of each distribution's mean from the answer, shape (m, laws)."""
        off: Floats = self.directions @ self.components.T - self.mean[:, np.newaxis]
        return off

    def draws(self, count: int, generator: np.random.Generator) -> Floats:
        """Draw u jointly, shape (count, m).

        A distribution is drawn by its probability. A structure's distance from the answer counts on either side, so
        that the answer is in the middle of the draws.
        """
        chosen, off = generator.choice(len(self.likely), count, p=self.likely), self._off
        found = np.empty((count, len(self.mean)))
        for number in np.unique(chosen):
            rows = np.flatnonzero(chosen == number)
            squares, axes = np.linalg.eigh(self.covariances[number])
            spread = self.directions @ (axes * np.sqrt(np.maximum(squares, 0.0)))
            # u0's errors are common to models that agree; a structure's are taken on either side.
            sides = 1.0 if number < len(self.likely) // 2 else generator.choice((-1.0, 1.0), (len(rows), 1))
            moved = generator.standard_normal((len(rows), len(squares))) @ spread.T
            found[rows] = self.mean + sides * off[:, number] + moved
        return found


def posterior(products: Floats, seen: NoisyObservations, share: float, people: int) -> Posterior:
    """Return the posterior of u from released numbers, X X', shape (m, m), the released s, in (0, 1), and n."""
    squares, directions = directions_of(products)
    spread, cross, r = share * (1 - share), directions.T @ seen.cross, len(squares)
    # Free directions act as additional components with their own variance.
    loose: Sequence[tuple[float, float]] = ((1.0, 1.0),)
    variances, effects = np.zeros(0), np.zeros((r, 0))
    if seen.free is not None:
        cross, variances, loose = np.vstack([cross, seen.free.seen.T]), seen.free.variances, LOOSE
        effects = directions.T @ seen.free.effects
    off = seen.values - share * seen.ones
    alone, noise = _alone(cross[:r], off, seen, FLAT * spread)
    weighed, log_det = _solved(spread * seen.gram, seen.noise, np.column_stack([cross.T, off]))
    told, values = cross @ weighed[:, :-1], cross @ weighed[:, -1]
    log = -0.5 * (float(off @ weighed[:, -1]) + log_det)
    # The same for sums with negligible noise, above 0 to avoid division by 0 even where all sums are empty.
    least = np.full(len(off), max(_NOISE_MIN * float(np.trace(seen.gram)) / max(len(off), 1), np.finfo(float).tiny))
    exactly, _ = _solved(spread * seen.gram, least, cross.T)
    told_exactly = cross @ exactly
    hidden = _hidden(np.diag(squares) - spread * told_exactly[:r, :r], directions, spread, people)
    logs, components, unseen, covariances = [], [], [], []
    supposed = structures(squares, len(products), share, people)
    chance = [math.log(min(len(products), CHANCE) * (len(STRUCTURES) - 1)), *[0.0] * (len(supposed) - 1)]
    for ((flatness, strength), likelier), (part, odds) in product(zip(supposed, chance, strict=True), loose):
        freely = part**2 * variances
        strengths = np.append(spread * strength * squares**-flatness, freely)
        less, log_det = _structure(told, strengths)
        logs.append(log + likelier + math.log(odds) + 0.5 * (float(values @ less @ values) - log_det))
        kernel = spread * (1 + strength * squares ** (1 - flatness))
        gain = np.hstack([np.diag(kernel), effects * freely])
        components.append(gain @ (values - told @ (less @ values)))
        before = np.diag(kernel * squares) + effects * freely @ effects.T + hidden
        covariances.append(before - _known(gain, told, less))
        less, _ = _structure(told_exactly, strengths)
        unseen.append(before - _known(gain, told_exactly, less))
    weights = _normalised(logs)
    means = np.array(components)
    return Posterior(
        directions @ (weights @ means),
        directions @ alone,
        np.sqrt(np.maximum(np.einsum("ij,ij->i", directions @ noise, directions), 0.0)),
        directions,
        np.concatenate([DOUBTED * weights, (1 - DOUBTED) * weights]),
        np.concatenate([np.tile(alone, (len(means), 1)), means]),
        np.concatenate([noise + unseen, covariances]),
    )


def _known(gain: Floats, information: Floats, less: Floats) -> Floats:
    """Return the reduction of U'u's covariance by the sums, X K S' M^-1 S K X', from `_structure`."""
    known: Floats = gain @ (information - information @ less @ information) @ gain.T
    return known


def _alone(cross: Floats, off: Floats, seen: NoisyObservations, spread: float) -> tuple[Floats, Floats]:
    """Return U'u0, shape (r,), and the covariance of its noise; `cross` is U'X S', and `spread` c s(1-s)."""
    solved, _ = _solved(spread * seen.gram, seen.noise, spread * cross.T)
    clouded = seen.noise[:, np.newaxis] * solved if seen.noise.ndim == 1 else seen.noise @ solved
    return off @ solved, solved.T @ clouded


def _hidden(unseen: Floats, directions: Floats, spread: float, people: int) -> Floats:
    """Return the covariance of U'u from what may hide, given U'A U, U, s(1-s) and n."""
    squares, axes = np.linalg.eigh(unseen)
    correlation = HIDDEN / np.cbrt(max(len(squares), 1))
    leading = axes[:, -1:] * correlation * np.sqrt(spread * people * np.maximum(squares[-1:], 0.0))
    of_models = directions @ unseen @ directions.T
    of_each = np.maximum(np.diag(of_models), _TINY)
    median = float(np.median(of_each))
    unlike = np.where(of_each > UNLIKE * median, of_each - median, 0.0)
    more = spread * (HIDDEN**2 * people * unlike + CHANCES * of_each) + np.minimum(of_each, PERSON)
    times = np.sqrt(more / of_each)[:, np.newaxis] * directions
    found: Floats = leading @ leading.T + times.T @ of_models @ times
    return found


def _normalised(logs: list[float]) -> Floats:
    weights = np.exp(np.array(logs) - max(logs))
    normalised: Floats = weights / weights.sum()
    return normalised


def _solved(gram: Floats, noise: Floats, columns: Floats) -> tuple[Floats, float]:
    """Return D^-1 columns and log det D, where D = gram + noise is M at tau = 0; diagonal for disjoint sums."""
    from scipy.linalg import cho_factor, cho_solve  # loading it takes a while

    if noise.ndim == 1 and np.count_nonzero(gram) == np.count_nonzero(np.diag(gram)):
        diagonal = np.diag(gram) + noise
        return columns / diagonal[:, np.newaxis], float(np.log(diagonal).sum())
    factor = cho_factor(
        gram + (np.diag(noise) if noise.ndim == 1 else noise), lower=True, overwrite_a=True, check_finite=False
    )
    return cho_solve(factor, columns, check_finite=False), 2 * float(np.log(np.diag(factor[0])).sum())


def _structure(information: Floats, strengths: Floats) -> tuple[Floats, float]:
    """Return L = w B^-1 w and log det B, from G = C D^-1 C'.

    M = D + C' W C with W = diag(strengths), so that by Woodbury's identity, with w the root of W, g = C D^-1 v and B =
    I + w G w:

        C M^-1 C' = G - G L G,    C M^-1 v = g - G L g,    v' M^-1 v = v' D^-1 v - g' L g,    det M = det D det B.

    So no structure needs a matrix as large as the number of sums.
    """
    from scipy.linalg import cho_factor, cho_solve

    roots = np.sqrt(strengths)
    inside = np.eye(len(roots)) + roots[:, np.newaxis] * information * roots
    factor = cho_factor(inside, lower=True, overwrite_a=True, check_finite=False)
    less = roots[:, np.newaxis] * cho_solve(factor, np.diag(roots), overwrite_b=True, check_finite=False)
    return less, 2 * float(np.log(np.diag(factor[0])).sum())


def centred_values(values: Floats) -> Floats:
    """Return X, the values less their means, shape (m, n): exactly 0 for a model with the same value for everybody."""
    centred: Floats = values - values.mean(axis=1, keepdims=True)
    # A constant row has no gap except by rounding.
    centred[np.ptp(values, axis=1) == 0] = 0.0
    return centred


def directions_of(products: Floats) -> tuple[Floats, Floats]:
    """Return l, shape (r,), descending, and U, shape (m, r), of X X' = U diag(l) U', without rounding errors."""
    squares, directions = (found[..., ::-1] for found in np.linalg.eigh(products))
    kept = int(np.count_nonzero(squares > max(_DIRECTION_MIN * squares[0], 0.0)))
    return squares[:kept], directions[:, :kept]


def structures(squares: Floats, models: int, share: float, people: int) -> list[tuple[float, float]]:
    """Return q and tau of each of `STRUCTURES`, for `models` models, with l as from `directions_of`."""
    found = []
    for flatness, multiple in STRUCTURES:
        joint = float((squares ** (2 - flatness)).sum()) / models
        unit = share * (1 - share) * (DEVIATION * people) ** 2 / joint if joint > 0 else 0.0
        found.append((flatness, multiple * unit))
    return found


def predicted_error(variances: Sequence[float], size_variance: float, people: int) -> float:
    """Return the expected error of a gap, a standard deviation, from public numbers.

    Averaged over the structures; `variances` are each one's mean posterior variance of u at `SHARE`. An error of N0
    moves a gap g by g (1/N1 - 1/N0) a person.
    """
    spread = SHARE * (1 - SHARE)
    per_person = (1 - 2 * SHARE) / (spread * people)
    errors = [
        math.hypot(math.sqrt(max(variance, 0.0)) / (spread * people),
                   math.sqrt(multiple * size_variance) * DEVIATION * per_person)
        for variance, (_, multiple) in zip(variances, STRUCTURES, strict=True)
    ]  # fmt: skip
    return sum(errors) / len(errors)


def variances_told(squares: Floats, factor: Floats, priors: Sequence[tuple[float, float]]) -> list[float]:
    """Return, for each structure, the posterior variance at `SHARE` of all u together, from public numbers.

    K X' = U diag(kernel) U'X with kernel = 1 + tau l^(1-q). With F F' = C D^-1 C' and T = s(1-s) tau diag(l^-q),
    Woodbury's identity gives the prior predictive information: C M^-1 C' = F (I + F' T F)^-1 F'. No matrix is larger
    than F's smaller side.

    `squares`: l, as from `directions_of`, shape (r,). `factor`: F, shape (r, k): such as C times the inverse of D's
    root, where C = U'X S' and D = s(1-s) S S' + R. `priors`: q and tau of each structure, as from `structures`.
    """
    spread, found, rows = SHARE * (1 - SHARE), list[float](), factor.T
    if len(rows) > len(squares):
        # Only F F' matters, and with F' = QR that is R'R.
        rows = np.asarray(np.linalg.qr(rows, mode="r"))
    for flatness, strength in priors:
        kernel = 1 + strength * squares ** (1 - flatness)
        shared = np.eye(len(rows)) + (rows * (spread * strength * squares**-flatness)) @ rows.T
        gain = rows * kernel
        known = float(np.einsum("ij,ij->", gain, np.linalg.solve(shared, gain)))
        found.append(spread * float(kernel @ squares) - spread**2 * known)
    return found


def variances_with_noise(squares: Floats, models: int, noise: float, people: int) -> list[float]:
    """Return the mean posterior variance of u, each released with independent noise, for each of `STRUCTURES`.

    Given l as from `directions_of`, m, the variance of that noise, and n.
    """
    found = []
    for flatness, strength in structures(squares, models, SHARE, people):
        before = SHARE * (1 - SHARE) * squares * (1 + strength * squares ** (1 - flatness))
        found.append(float((before * noise / (before + noise)).sum()) / models)
    return found
