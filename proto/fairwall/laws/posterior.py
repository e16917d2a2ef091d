r"""What noisy sums over the disadvantaged people say about the gaps of a whole batch, given the predictions.

**Setting.** Among n people z_i is 1 for a disadvantaged one, else 0. Each row of X, shape (m, n), is a model's values
less their mean. Whoever knows u = X z and N0 = sum z knows the gaps: the disadvantaged add up to N0 mean + u, hence

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

with the posterior covariance s(1-s) X K X' - s^2(1-s)^2 X K S' M^-1 S K X'. K never stands there by itself. With C =
U'X S', X K S' = U diag(1 + tau l^(1-q)) C and S K S' = S S' + tau C' diag(l^-q) C. So nothing of size n x n is formed.
The answers for several q and tau (`STRUCTURES`) are averaged by what each says of y, its density N(y; s S 1, M): the
batch itself decides how much it has in common. Of real tables q = 1/2 and 1 fit better than q = 0 as often as not, and
intervals that leave them out are too narrow.

**What y says by itself**, as if nothing were expected of z, is

    u0 = c s(1-s) X S' (c s(1-s) S S' + R)^-1 (y - s S 1),    with a large c, `FLAT`:

the best linear answer that is unbiased, beside what no sum sees. The prior moves it, and where the prior is wrong that
is an error which noise does not explain. `Posterior.near` keeps an answer within `FARTHEST` deviations of u0's noise.
Beside what no sum sees it then errs at most 1 + `FARTHEST` times as much as u0 in the root mean square, whatever A is.

**How sure.** Answers err less for the prior, mostly, and more where it is wrong. So with a probability of `DOUBTED` it
is taken to say nothing of what the sums see: u is about u0 then, as far as u0's noise. Otherwise u is about the mean of
one of the structures, with its posterior covariance. Either way there is what no sum sees. Were the sums exact, u would
have the covariance

    s(1-s) (X K X' - X K S' (S K S')^-1 S K X'),

and that takes from the prior alone how z goes with X among people whom no sum tells apart. More may hide there: of what
the sums leave of X, A = X X' - X S' (S S')^-1 S X', the leading component, d with the eigenvalue a, is a weight w for
each person, and z may go with it: the less, the more other directions there are, r of them in all. The correlation is
taken to be `HIDDEN` r^(-1/3). As u = (A d / a) w'z, that adds

    `HIDDEN`^2 r^(-2/3) n s(1-s) a d d'.

A model may also be unlike all others, as one version among many that gives a group's people more: where A_jj is above
`UNLIKE` times the median, as much may hide in what is more than of the median model: `HIDDEN`^2 n s(1-s) (A_jj -
median). And intervals of m models shall hold of the worst one, of which chance may be larger than of most: s(1-s) A_jj
is added `CHANCES` times more, and one person's variance, 1, or A_jj where that is less. As far as models agree in what
the sums leave, what hides in them does: with b_j the sum of these three, that adds A_jk sqrt(b_j b_k / (A_jj A_kk)).

What is claimed are quantiles of this mixture, and not its variance: what little speaks for takes no more than its part
of what may be missed.

**Directions of their own.** Where a sum was bought for what the prior may be wrong about (`fairwall.laws.residuals`), z
has W g besides, with independent g. How large they are is averaged over as q and tau are, with the parts of `LOOSE` of
what is expected at most. That is as if u had as many components more, with a variance of their own: with F = S W, C
becomes (C, F') and X K S' becomes U diag(1 + tau l^(1-q)) C + X W Var(g) F'.

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
from numpy.typing import NDArray

DEVIATION = 0.05
"""The deviation of a gap beside chance for tau_1."""

STRUCTURES = ((0.0, 0.0), (0.0, 1.0), (0.0, 16.0), (0.0, 144.0), (0.5, 1.0), (0.5, 16.0), (1.0, 1.0), (1.0, 16.0))
"""What is averaged: q, and tau in multiples of tau_1: chance alone, and deviations of 0.05, 0.2 and 0.6 beside it.

Gaps of 0.6 are those that all models share: with a q above 0 what hides in one model would be read as such a gap.

Beforehand chance is m times as likely as all others together, up to `CHANCE` times: noise shall not be read as
structure, and a wrong structure errs m times. More would shrink answers about real gaps at a small epsilon.
"""

CHANCE = 10

DOUBTED = 0.35
"""How likely it is taken to be that the prior says nothing of what the sums see.

So where it says nothing 1 - .05 / .35 = 86% hold at least. With 0.2 intervals of real decisions are 2% narrower, and
with 0 too few hold in the worst shapes (`benchmarks/shapes.py`).
"""

HIDDEN = 0.65
"""The correlation of z with what the sums leave of models, were it of one direction, for how sure an answer is.

A standard deviation. With 0.22 for every r likely intervals of 25 models are the same. But of five models about three
clusters of 300 people, in each of which the score alone tells the group, 67% hold then, and 88% now
(`benchmarks/shapes.py`).
"""

UNLIKE = 1.5
"""How many times the median model's what the sums leave of one model is where it is unlike the others.

With 1 half of all models are unlike the others, and intervals of real decisions widen by two thirds; with 2 one version
among 25, with .12 more for 7 people of 100, is like them, and its interval holds in 5% of draws.
"""

CHANCES = 1.0
"""How many times chance is added to how sure an answer is, in what no sum sees of a model.

What hides there does not change from draw to draw: of 25 models one has a chance of two deviations. With 0 the worst
model's interval holds in 79% of draws where models differ about five people each; with 2 intervals of 100 real models
are 1.2 times as wide as with 0.
"""

PERSON = 1.0
"""And how much is added where more than this of a person is unseen, a variance: a small group is moved by each one."""

FARTHEST = 0.6
"""How many deviations of its noise an answer is moved by what is expected of it.

With less, answers err less where gaps are not as the prior has them: of five models at epsilon 1, where the others
alone score high at times, they err 2.2 times as much as a cube's without a limit, 1.9 times with 1 and 1.7 times with
0.7. But of 25 models that share nothing they err more, as the noise is all that is left: by 8% with 1, and by 11% with
0.7. With 0.4 the errors of 25 real models are 10% larger than with 0.6, and the worst model's interval holds in 78% of
draws where it holds in 72% (`benchmarks/shapes.py`, `benchmarks/batch_error.py`, 40 draws and fewer).
"""

LOOSE = ((0.0, 0.45), (0.3, 0.2), (1.0, 0.2), (3.0, 0.15))
"""How much of what may go with a free direction is expected to, and how likely beforehand: what was measured decides.

In multiples of its standard deviation. If all of it always were, a measured sum's noise would be taken for what it
says; if never more, the worst interval of models within three clusters would hold in 74% of draws where it holds in 86%
(`benchmarks/shapes.py`).
"""

FLAT = 1e4
"""How many times as much as chance gives is expected of z where nothing is: so many that noise alone decides."""

_DIRECTION_MIN = 1e-10
"""Components of less than this part of the largest one's square are rounding errors."""

_NOISE_MIN = 1e-9
"""Beside the mean square of the sums' rows, noise that is as good as none."""

_TINY = 1e-200
"""No variance is less."""

_STEPS = 40
"""How often the end of an interval is looked for at most: by Newton's method two or three times are mostly enough."""

_NEAR = 1e-10
"""What probability an interval may be off by."""

SHARE = 0.2
"""The share of disadvantaged people for which errors are predicted: inside the usual range, and public."""


@dataclass(frozen=True, eq=False)
class Seen:
    """Numbers released: y = S z + noise, in so far as an answer about X needs to know S.

    Parameters
    ----------
    values : ndarray of float64
        y, shape (k,).
    ones : ndarray of float64
        S 1, how much each number would be with everybody disadvantaged, shape (k,).
    gram : ndarray of float64
        S S', shape (k, k).
    cross : ndarray of float64
        X S', shape (m, k).
    noise : ndarray of float64
        The covariance of the noise, shape (k, k), or its diagonal, shape (k,).
    free : of what the prior says nothing.
    """

    values: NDArray[np.float64]
    ones: NDArray[np.float64]
    gram: NDArray[np.float64]
    cross: NDArray[np.float64]
    noise: NDArray[np.float64]
    free: Free | None = None


@dataclass(frozen=True, eq=False)
class Free:
    """Directions W, shape (n, d), in which z is taken to vary by itself: z has W g besides, with independent g.

    Parameters
    ----------
    seen : ndarray of float64
        S W, shape (k, d).
    effects : ndarray of float64
        X W, shape (m, d).
    variances : ndarray of float64
        Of g, shape (d,).
    """

    seen: NDArray[np.float64]
    effects: NDArray[np.float64]
    variances: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Posterior:
    """What is known of u: an answer, and a mixture of normal laws in which it may lie.

    Parameters
    ----------
    mean : ndarray of float64
        The answer, shape (m,).
    alone, noise : ndarray of float64
        u0, and the deviation of its noise, shape (m,).
    directions : ndarray of float64
        U, shape (m, r).
    likely : ndarray of float64
        The probability of each law, shape (laws,).
    components : ndarray of float64
        The mean of U'u by each law, shape (laws, r).
    covariances : ndarray of float64
        Of U'u by each law, shape (laws, r, r).
    """

    mean: NDArray[np.float64]
    alone: NDArray[np.float64]
    noise: NDArray[np.float64]
    directions: NDArray[np.float64]
    likely: NDArray[np.float64]
    components: NDArray[np.float64]
    covariances: NDArray[np.float64]

    def within(
        self, level: float, besides: NDArray[np.float64] | float = 0.0, combinations: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Return how far from the mean each u is at most, with probability `level`, shape (..., m).

        Or combinations of them, shape (p, m). `besides` is the variance of what errs independently of u, (..., m).
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
        """Return it with the answer moved to within `FARTHEST` deviations of what the sums say by themselves."""
        reach = FARTHEST * self.noise
        return replace(self, mean=np.clip(self.mean, self.alone - reach, self.alone + reach))

    @cached_property
    def _variances(self) -> NDArray[np.float64]:
        """The variance of each u by each law, shape (m, laws)."""
        return self._variances_of(self.directions)

    def _variances_of(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.stack([np.einsum("ij,ij->i", rows @ each, rows) for each in self.covariances], axis=1)

    @property
    def _off(self) -> NDArray[np.float64]:
        """How far each law's mean is from the answer, shape (m, laws)."""
        off: NDArray[np.float64] = self.directions @ self.components.T - self.mean[:, np.newaxis]
        return off

    def draws(self, count: int, generator: np.random.Generator) -> NDArray[np.float64]:
        """Draw u jointly, shape (count, m).

        A law is drawn by its probability. How far a structure's mean is from the answer counts on either side, so that
        the answer is in the middle of what is believed.
        """
        chosen, off = generator.choice(len(self.likely), count, p=self.likely), self._off
        found = np.empty((count, len(self.mean)))
        for number in np.unique(chosen):
            rows = np.flatnonzero(chosen == number)
            squares, axes = np.linalg.eigh(self.covariances[number])
            spread = self.directions @ (axes * np.sqrt(np.maximum(squares, 0.0)))
            # What sums say by themselves of one model, they say of those that agree with it.
            sides = 1.0 if number < len(self.likely) // 2 else generator.choice((-1.0, 1.0), (len(rows), 1))
            moved = generator.standard_normal((len(rows), len(squares))) @ spread.T
            found[rows] = self.mean + sides * off[:, number] + moved
        return found


def posterior(products: NDArray[np.float64], seen: Seen, share: float, people: int) -> Posterior:
    """Return what released numbers say of u, given X X', shape (m, m), s, above 0 and below 1, and n.

    s is as released, too.
    """
    squares, directions = directions_of(products)
    spread, cross, r = share * (1 - share), directions.T @ seen.cross, len(squares)
    # Free directions are as if there were more components, of a variance of their own.
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
    # The same for sums without noise; so little of it that nothing is divided by 0, also where all sums are of nothing.
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


def _known(gain: NDArray[np.float64], told: NDArray[np.float64], less: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what sums take away of the covariance of U'u, X K S' M^-1 S K X', by `_structure`."""
    known: NDArray[np.float64] = gain @ (told - told @ less @ told) @ gain.T
    return known


def _alone(
    cross: NDArray[np.float64], off: NDArray[np.float64], seen: Seen, spread: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return U'u0, shape (r,), and the covariance of its noise; `cross` is U'X S', and `spread` c s(1-s)."""
    solved, _ = _solved(spread * seen.gram, seen.noise, spread * cross.T)
    clouded = seen.noise[:, np.newaxis] * solved if seen.noise.ndim == 1 else seen.noise @ solved
    return off @ solved, solved.T @ clouded


def _hidden(
    left: NDArray[np.float64], directions: NDArray[np.float64], spread: float, people: int
) -> NDArray[np.float64]:
    """Return the covariance of U'u by what may hide, given U'A U, U, s(1-s) and n."""
    squares, axes = np.linalg.eigh(left)
    correlation = HIDDEN / np.cbrt(max(len(squares), 1))
    leading = axes[:, -1:] * correlation * np.sqrt(spread * people * np.maximum(squares[-1:], 0.0))
    of_models = directions @ left @ directions.T
    of_each = np.maximum(np.diag(of_models), _TINY)
    median = float(np.median(of_each))
    unlike = np.where(of_each > UNLIKE * median, of_each - median, 0.0)
    more = spread * (HIDDEN**2 * people * unlike + CHANCES * of_each) + np.minimum(of_each, PERSON)
    times = np.sqrt(more / of_each)[:, np.newaxis] * directions
    found: NDArray[np.float64] = leading @ leading.T + times.T @ of_models @ times
    return found


def _normalised(logs: list[float]) -> NDArray[np.float64]:
    weights = np.exp(np.array(logs) - max(logs))
    normalised: NDArray[np.float64] = weights / weights.sum()
    return normalised


def _solved(
    gram: NDArray[np.float64], noise: NDArray[np.float64], columns: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """Return D^-1 columns and log det D, where D = gram + noise, a covariance or its diagonal, is M at tau = 0.

    Where all sums are of people of their own, as cells are, D is diagonal.
    """
    from scipy.linalg import cho_factor, cho_solve  # loading it takes a while

    if noise.ndim == 1 and np.count_nonzero(gram) == np.count_nonzero(np.diag(gram)):
        diagonal = np.diag(gram) + noise
        return columns / diagonal[:, np.newaxis], float(np.log(diagonal).sum())
    factor = cho_factor(
        gram + (np.diag(noise) if noise.ndim == 1 else noise), lower=True, overwrite_a=True, check_finite=False
    )
    return cho_solve(factor, columns, check_finite=False), 2 * float(np.log(np.diag(factor[0])).sum())


def _structure(told: NDArray[np.float64], strengths: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    r"""Return L = w B^-1 w and log det B, from G = C D^-1 C'.

    M = D + C' W C with W = diag(strengths), so that by Woodbury's identity, with w the root of W, g = C D^-1 v and B =
    I + w G w:

        C M^-1 C' = G - G L G,    C M^-1 v = g - G L g,    v' M^-1 v = v' D^-1 v - g' L g,    det M = det D det B.

    So no structure needs anything as large as there are sums.
    """
    from scipy.linalg import cho_factor, cho_solve

    roots = np.sqrt(strengths)
    inside = np.eye(len(roots)) + roots[:, np.newaxis] * told * roots
    factor = cho_factor(inside, lower=True, overwrite_a=True, check_finite=False)
    less = roots[:, np.newaxis] * cho_solve(factor, np.diag(roots), overwrite_b=True, check_finite=False)
    return less, 2 * float(np.log(np.diag(factor[0])).sum())


def centred_values(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return X, the values less their means, shape (m, n): just 0 for a model that predicts the same for everybody."""
    centred: NDArray[np.float64] = values - values.mean(axis=1, keepdims=True)
    # What is the same for everybody has no gap but by rounding.
    centred[np.ptp(values, axis=1) == 0] = 0.0
    return centred


def directions_of(products: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return l, shape (r,), and U, shape (m, r), of X X' = U diag(l) U': the largest first, no rounding errors."""
    squares, directions = (found[..., ::-1] for found in np.linalg.eigh(products))
    kept = int(np.count_nonzero(squares > max(_DIRECTION_MIN * squares[0], 0.0)))
    return squares[:kept], directions[:, :kept]


def structures(squares: NDArray[np.float64], models: int, share: float, people: int) -> list[tuple[float, float]]:
    """Return q and tau of each of `STRUCTURES`, for so many models, with l as `directions_of` gives it."""
    found = []
    for flatness, multiple in STRUCTURES:
        joint = float((squares ** (2 - flatness)).sum()) / models
        unit = share * (1 - share) * (DEVIATION * people) ** 2 / joint if joint > 0 else 0.0
        found.append((flatness, multiple * unit))
    return found


def predicted_error(variances: Sequence[float], size_variance: float, people: int) -> float:
    """Return the error of a gap to expect, before anything is drawn or looked at.

    It is a standard deviation, averaged over the structures: the variances are the mean posterior ones of u at `SHARE`,
    for each of them. N0 errs too, by which a gap g is multiplied: it moves by g (1/N1 - 1/N0) a person.
    """
    spread = SHARE * (1 - SHARE)
    per_person = (1 - 2 * SHARE) / (spread * people)
    errors = [
        math.hypot(math.sqrt(max(variance, 0.0)) / (spread * people),
                   math.sqrt(multiple * size_variance) * DEVIATION * per_person)
        for variance, (_, multiple) in zip(variances, STRUCTURES, strict=True)
    ]  # fmt: skip
    return sum(errors) / len(errors)


def variances_told(
    squares: NDArray[np.float64], told: NDArray[np.float64], priors: Sequence[tuple[float, float]]
) -> list[float]:
    """Return the posterior variance at `SHARE` of all u together, before anything is seen, for each structure.

    K X' = U diag(kernel) U'X with kernel = 1 + tau l^(1-q). With F F' = C D^-1 C' and T = s(1-s) tau diag(l^-q),
    Woodbury's identity gives what is known of the components beforehand: C M^-1 C' = F (I + F' T F)^-1 F'. No matrix is
    larger than F's smaller side.

    Parameters
    ----------
    squares : ndarray of float64
        l, as `directions_of` gives it, shape (r,).
    told : ndarray of float64
        F, shape (r, k): such as C times the inverse of D's root, where C = U'X S' and D = s(1-s) S S' + R.
    priors : q and tau of each structure, as from `structures`.
    """
    spread, found, rows = SHARE * (1 - SHARE), list[float](), told.T
    if len(rows) > len(squares):
        # Only F F' counts, and of F' = QR that is R'R.
        rows = np.asarray(np.linalg.qr(rows, mode="r"))
    for flatness, strength in priors:
        kernel = 1 + strength * squares ** (1 - flatness)
        shared = np.eye(len(rows)) + (rows * (spread * strength * squares**-flatness)) @ rows.T
        gain = rows * kernel
        known = float(np.einsum("ij,ij->", gain, np.linalg.solve(shared, gain)))
        found.append(spread * float(kernel @ squares) - spread**2 * known)
    return found


def variances_with_noise(squares: NDArray[np.float64], models: int, noise: float, people: int) -> list[float]:
    """Return the mean posterior variance of u where each is released with independent noise of one variance.

    Given are l as of `directions_of`, m, the variance of that noise, and n; returned one for each of `STRUCTURES`.
    """
    found = []
    for flatness, strength in structures(squares, models, SHARE, people):
        before = SHARE * (1 - SHARE) * squares * (1 + strength * squares ** (1 - flatness))
        found.append(float((before * noise / (before + noise)).sum()) / models)
    return found
