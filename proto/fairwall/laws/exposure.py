r"""How many people's attributes a whole batch gives away, at best for an attacker who may choose its predictions.

**The attack.** Nothing else is known but N0, and the laws of all noise are public. Whoever has a budget for m answers
spends all of it on finding out who is disadvantaged, and guesses for everybody. He is right for the balanced accuracy,
the mean of both groups' shares; guessing gets 1/2. Where little is told, that grows with the square root of what is
told about one person, so that it pays to ask about everybody alike: rows that are 0 or 1, as many of each, tossed at
random. Rows that say much about few, such as weights 1, 2, 4, ... are better only where far more than `reveal_max` is
lost anyway. (`developer/reveal` plays such attacks, and tests hold these numbers against its figures.)

**What one row tells about one person.** Let the row's 1s be k people with the person among them, X of them
disadvantaged. Seen is X plus noise. With z = 1 where the person is disadvantaged,

    X = 1 + H(n - 1, k - 1, N0 - 1)  for z = 1,    X = H(n - 1, k - 1, N0)  for z = 0,

H the hypergeometric count of N0 - z others among k - 1 of n - 1. So the density of what is seen is known under both,
and so is the law of the log-likelihood ratio L. A person whose row is 0 is told just as much, by N0 - X.

**Many rows** are taken for independent of each other. What is found out of some people disturbs the others' rows no
more: beyond an accuracy of `_DISTURBED_LESS` as many fewer people are reckoned with as z's variance is less, until that
stays (the fixed point of Tanaka, IEEE Trans. Inf. Theory 48, 2002, for random spreading). So their ratios add up, and
the sum's law is the m-fold convolution of L's. Guessing by its sign is what is right most often; it is right for

    (P(sum > 0 | z = 1) + P(sum <= 0 | z = 0)) / 2  =  1/2 + TV / 2,

TV the total variation distance between what is seen of a disadvantaged person and of an advantaged one. Nearly Gaussian
sums make that Phi(d/2), where for a noise variance S^2 and rows of 0 and 1, p = N0/n, d^2 = m / (n p (1-p) + 4 S^2).

**Large data sets.** d does not change where n, N0 and m are divided by one number and the noise by its square root.
So large ones are as small ones with n p (1-p) = `_SPREAD_MAX`, but for m below 1, which is taken as 1: too much.

**Mechanisms.** Noise on gaps is N0 N1 / n times as large on X. A batch's cube (`fairwall.laws.cube`) has as few sides
as it has different coordinates: he takes the number that serves him best. Given its size T, its noise is uniform on
-T..T, and what all answers say of T counts too: the ratio of the person's two likelihoods, both of them means over T,
is drawn, with a fixed seed. Cells answer later batches too, for nothing, so that all noisy counts can be found out,
however many models a batch has; they are rows of k = n/C people. With N0 known, so is the sum of all noise but for its
own, and noise has 1 - 1/C of its variance. Tables by group (`fairwall.laws.groups`) are cells whose noise is that of
two groups, of a group and everybody else, which hides least; what several of them tell adds up as of normal laws. Of a
given number of cells, equal ones give most away: with k people in it, a cell gives away k Phi(d/2), which is concave in
k. Randomised response tells each attribute with probability 1/(1 + e^-epsilon), and nothing that is epsilon-private
does more:

    1/2 + TV/2 <= (e^epsilon + delta) / (1 + e^epsilon)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairwall.laws.cells import CELL_MIN, cells_scale, least_people
from fairwall.laws.cube import TOGETHER, CubeNoise
from fairwall.laws.low_rank import COORDINATES_MAX
from fairwall.laws.mechanisms import MECHANISM_LAWS, Batch
from fairwall.laws.metric import find_metric
from fairwall.laws.noise import Laplace, Law
from fairwall.laws.shares import DEFAULT_SHARES, Shares

REVEAL_MAX = 0.6
"""What a policy allows unless it says otherwise."""


@dataclass(frozen=True)
class Limit:
    """What a batch may reveal at most.

    That is the balanced accuracy of the best attack, in [1/2, 1], 1 for no limit; and for which public range of group
    shares that holds.
    """

    accuracy: float = 1.0
    shares: Shares = DEFAULT_SHARES


NO_LIMIT = Limit()

_KNOWN = frozenset({"sums", "cube", "directions", "cells", "attributes"})
"""What noise may be on for `revealed` to know what is given away, beside independent noise on gaps."""

_SPREAD_MAX = 100.0
_BINS = 1 << 14
_POINTS = 1000
_SEED, _DRAWS, _SIZES = 2026, 20_000, 16
"""A cube's seed, how many answers are drawn, and how many sizes T has, by its quantiles."""

_FAR = 40.0
"""How many scales of noise away its density is looked at."""

_DEVIATIONS = 6
_DISTURBED_LESS, _ROUNDS, _STEADY = 0.6, 12, 2e-3
_LEAST_SCALE = 0.02
"""Less noise than this part of a person is taken for so much: it hides nothing."""


def is_known(mechanism: str) -> bool:
    """Return whether `revealed` knows what a mechanism's answers give away."""
    law = MECHANISM_LAWS.get(mechanism)
    return law is not None and (law.independent or law.noise_on in _KNOWN)


def revealed(
    mechanism: str,
    metric: str,
    n: int,
    queries: int,
    epsilon: float,
    delta: float = 0.0,
    shares: Shares = DEFAULT_SHARES,
    *,
    different: int | None = None,
) -> float:
    """Return the balanced accuracy of the best attack with a whole batch, at the worst group size of a public range.

    Parameters
    ----------
    n : int
        People whom the metric looks at, at least 2; they are taken to be as many in each of its strata.
    epsilon, delta : float
        The whole budget of the batch.
    different : int or None
        How many different coordinates the batch has for a cube; None where the attacker still chooses his batch.

    Raises
    ------
    ValueError
        For a mechanism of which `is_known` says no.
    """
    if not is_known(mechanism):
        raise ValueError(f"nothing is known of what mechanism {mechanism} reveals")
    n = max(2, n // len(find_metric(metric).strata))
    sizes = _sizes(n, shares) if MECHANISM_LAWS[mechanism].noise_on == "gaps" else _sizes(n, shares)[:1]
    return max(_revealed(mechanism, metric, n, n0, queries, epsilon, delta, shares, different) for n0 in sizes)


def within(
    names: Sequence[str], metric: str, n: int, queries: int, epsilon: float, delta: float, limit: Limit
) -> list[str]:
    """Return which mechanisms stay within a limit; where none does, the one that reveals least. Arguments as above."""
    if limit.accuracy >= one_person(epsilon, delta):
        return list(names)
    told = {name: revealed(name, metric, n, queries, epsilon, delta, limit.shares) for name in names}
    inside = [name for name in names if told[name] <= limit.accuracy]
    return inside or [min(names, key=lambda name: told[name])]


def one_person(epsilon: float, delta: float = 0.0) -> float:
    """Return the limit to how often somebody is right about one person aimed at, both groups counted equally."""
    return min(1.0, 1 / (1 + math.exp(-epsilon)) + delta / (1 + math.exp(min(epsilon, 700.0))))


def in_words(accuracy: float, epsilon: float, delta: float = 0.0, fewest: int = 1) -> str:
    """Say in plain words what a batch gives away at most, where both groups have at least so many people."""
    groups = "however small a group is" if fewest == 1 else f"where both have at least {fewest:,} people"
    return (
        "Whoever spends this whole batch on finding out who is who, by the best attack known here, has a balanced "
        f"accuracy of at most {_percent(accuracy)}, the mean of the shares of both groups that are named right, "
        f"{groups}; guessing gives 50%, and several batches tell more. About one person aimed at, the limit of one "
        f"batch is e^eps/(1+e^eps), {_percent(one_person(epsilon, delta))} at epsilon {epsilon:,.10g}."
    )


def least_people_within(epsilon: float, limit: Limit) -> int:
    """Return how many people a cell holds at least under a limit: what cells reveal is reckoned for no smaller ones."""
    return least_people(epsilon) if limit.accuracy >= one_person(epsilon) else CELL_MIN


@lru_cache(maxsize=256)
def cells_within(n: int, epsilon: float, limit: Limit) -> int:
    """Return into how many cells the people of a stratum may be put at most so that all reveal no more than a limit.

    Of n people, at least 2, and an epsilon above 0 and finite. It is at least 1: all in one cell reveal N0 and nobody.
    """
    if limit.accuracy >= one_person(epsilon):
        return n

    def fits(cells: int) -> bool:
        return _of_cells(n, limit.shares.allowed(n)[0], cells, epsilon) <= limit.accuracy

    most = max(1, n // CELL_MIN)
    # The more there are the more they reveal.
    low, high = 1, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def of_tables(
    n: int, tables: Mapping[int, int], sums: int, epsilon: float, sums_epsilon: float, shares: Shares
) -> float:
    """Return the balanced accuracy of the best attack with counts by group, on who is in a group of the least size.

    Parameters
    ----------
    n : int
        People who are counted, at least 2.
    tables : mapping of int to int
        How many tables there are of each number of strata, all of noise of its rate.
    sums : int
        How many models' scores are summed by group.
    epsilon, sums_epsilon : float
        Of each table, and of the sums of each model; the noise between two groups, which hides least.
    """

    def told(n: int, n0: int) -> float:
        square = 0.0
        for strata, number in tables.items():
            square += number * _distance(_of_cells(n, n0, min(strata, n), epsilon)) ** 2
        if sums:
            square += _distance(_of_rows(Laplace(0.5 / sums_epsilon), n, n0, sums)) ** 2
        return NormalDist().cdf(math.sqrt(square) / 2)

    return _found_out(told, n, shares.allowed(n)[0])


def _distance(accuracy: float) -> float:
    """Return how far apart two normal laws of deviation 1 are that are told apart so well: distances add up squared."""
    return 2 * NormalDist().inv_cdf(min(accuracy, 1 - 1e-9))


def _sizes(n: int, shares: Shares) -> list[int]:
    """Return the sizes of the smaller group that are looked at: the least, one between and the largest.

    Noise that does not depend on N0 hides least where n p (1-p) is least; only that on gaps has to be looked at more.
    """
    least, most = shares.allowed(n)
    return sorted({least, round(math.sqrt(least * most)), most})


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"


@lru_cache(maxsize=4096)
def _revealed(
    mechanism: str,
    metric: str,
    n: int,
    n0: int,
    queries: int,
    epsilon: float,
    delta: float,
    shares: Shares,
    different: int | None,
) -> float:
    promised = one_person(epsilon, delta)
    public = MECHANISM_LAWS[mechanism]
    noise_on = public.noise_on
    if noise_on == "attributes" or math.isinf(epsilon):
        return promised
    if noise_on == "cells":
        found = max(_of_cells(n, n0, cells, epsilon) for cells in _steps(max(1, n // least_people(epsilon))))
        return min(found, promised)
    asked = find_metric(metric)
    proxy = metric if len(asked.parts) == 1 else "abs_sp"
    rows = queries if noise_on == "gaps" else queries * asked.sums_a_stratum
    numbers = [rows]
    if noise_on in ("cube", "directions"):
        # A few common directions are as so many models for a cube.
        public, most = MECHANISM_LAWS["cube"], rows if noise_on == "cube" else min(rows, COORDINATES_MAX)
        numbers = _steps(most) if different is None else [min(different, rows)] * (different > 0)
    found = 0.5
    # The attacker chooses between numbers of rows, of which each has the noise of a law on X.
    for number in numbers:
        law = public.error(Batch(proxy, n0, n - n0, number, epsilon, delta, shares=shares))
        assert law is not None, "those that are known add noise"
        found = max(found, _of_noise(_times(law, n0 * (n - n0) / n), n, n0, number))
    return min(found, promised)


def _steps(most: int) -> list[int]:
    """Return numbers from 1 up to `most`, none more than twice the one before; `TOGETHER` is one of them."""
    return sorted({most, min(most, TOGETHER)} | {2**i for i in range(most.bit_length())})


def _times(law: Law, factor: float) -> Law:
    scaled: Any = law
    least = _LEAST_SCALE / law.sides if isinstance(law, CubeNoise) else _LEAST_SCALE
    found: Law = replace(scaled, scale=max(law.scale * factor, least))
    return found


def _of_noise(law: Law, n: int, n0: int, rows: int) -> float:
    """Return the balanced accuracy of so many rows of 0 and 1 with noise on X, that of a cube or independent."""
    smaller = max(1.0, n0 * (n - n0) / n / _SPREAD_MAX)
    if smaller > 1:
        law = _times(law, 1 / math.sqrt(smaller))
        n, n0, rows = round(n / smaller), round(n0 / smaller), max(1, round(rows / smaller))
    told: Callable[[int, int], float] = (
        (lambda n, n0: _of_cube(law, n, n0, rows)) if isinstance(law, CubeNoise) else
        (lambda n, n0: _of_rows(law, n, n0, rows))
    )  # fmt: skip
    return _found_out(told, n, n0)


def _found_out(told: Callable[[int, int], float], n: int, n0: int) -> float:
    """Return the accuracy once what is found out of some people disturbs the others no more."""
    found = told(n, n0)
    for _ in range(_ROUNDS):
        if found < _DISTURBED_LESS:
            break
        left = _uncertain(found, n0 / n)
        before, found = found, max(found, told(max(2, math.ceil(n * left)), max(1, math.ceil(n0 * left))))
        if found - before < _STEADY:
            break
    return found


def _uncertain(accuracy: float, share: float) -> float:
    """Return what part of the variance p (1-p) of z is left, for a Gaussian log-likelihood ratio of this accuracy."""
    d = _distance(accuracy)
    x = np.linspace(-8, 8, 401)
    weights = np.exp(-(x**2) / 2)
    weights /= weights.sum()
    left = 0.0
    for sign, prior in ((1, share), (-1, 1 - share)):
        odds = math.log(share / (1 - share)) + sign * d * d / 2 + d * x
        left += prior * float(weights @ (0.25 / np.cosh(np.clip(odds / 2, -300, 300)) ** 2))
    return left / (share * (1 - share))


def _of_rows(law: Law, n: int, n0: int, rows: int) -> float:
    first, with_one, without = _counts(n, n // 2, n0)
    middle, reach = first + len(without) / 2, len(without) / 2 + 1
    near = np.linspace(-reach, reach, _POINTS)
    far = law.scale * _FAR * np.sinh(np.linspace(-6, 6, _POINTS)) / math.sinh(6)
    # Middles of steps: nothing has its peak just there.
    ends = np.unique(np.concatenate([near, far]))
    x, width = middle + (ends[1:] + ends[:-1]) / 2, np.diff(ends)
    density = np.exp(law.log_density(x[:, np.newaxis] - (first + np.arange(len(without)))))
    return accuracy(width * (density @ with_one), width * (density @ without), rows)


def _of_cube(law: CubeNoise, n: int, n0: int, rows: int) -> float:
    from scipy.special import gammaincinv  # loading it takes a while

    rng = np.random.default_rng(_SEED)
    _, *laws = _counts(n, n // 2, n0)
    sizes = law.scale * gammaincinv(law.sides + 1, (np.arange(_SIZES) + 0.5) / _SIZES)
    draws = max(_DRAWS // rows // 2, 200)
    x = np.concatenate([rng.choice(len(of_x), (draws, rows), p=of_x) for of_x in laws])
    seen = x + rng.choice(sizes, (2 * draws, 1)) * rng.uniform(-1, 1, (2 * draws, rows))
    # X lies within T of what is seen. (The density of uniform noise, 1 / 2T, is that of both hypotheses.)
    ends = [
        np.clip(np.floor(end).astype(np.intp) + 1, 0, len(laws[0]))
        for end in (seen[..., np.newaxis] - sizes, seen[..., np.newaxis] + sizes)
    ]
    likely = []
    for of_x in laws:
        below = np.append(0.0, np.cumsum(of_x))
        each = np.log(np.maximum(below[ends[1]] - below[ends[0]], 1e-300)).sum(axis=1) - rows * np.log(sizes)
        likely.append(np.logaddexp.reduce(each, axis=1))
    # TV is the mean of |p1 - p0| / (p1 + p0) over what is seen in either half of the cases.
    return 0.5 + float(np.abs(np.tanh((likely[0] - likely[1]) / 2)).mean()) / 2


def _of_cells(n: int, n0: int, cells: int, epsilon: float) -> float:
    """Return the balanced accuracy of noisy counts of so many cells of equal size."""
    if cells < 2:
        return 0.5
    scale = cells_scale(epsilon) * math.sqrt(1 - 1 / cells)
    _, with_one, without = _counts(n, n // cells, n0)
    most = math.ceil(_FAR * scale)
    noise = np.exp(-np.abs(np.arange(-most, most + 1)) / scale)
    noise /= noise.sum()
    return accuracy(np.convolve(with_one, noise), np.convolve(without, noise), 1)


def _counts(n: int, k: int, n0: int) -> tuple[int, NDArray[np.float64], NDArray[np.float64]]:
    """Return the distributions of X given the group of a person among the k, disadvantaged first, and their least X.

    What is farther than `_DEVIATIONS` of X's deviations from its mean is left out.
    """
    logs = _log_factorials(n)
    middle, reach = k * n0 / n, 3 + _DEVIATIONS * math.sqrt(k * n0 * (n - n0)) / n
    x = np.arange(max(0, math.floor(middle - reach)), min(k, math.ceil(middle + reach)) + 1)

    def log_choose(of: int, chosen: NDArray[np.int_]) -> NDArray[np.float64]:
        taken = np.clip(chosen, 0, of)
        found: NDArray[np.float64] = np.where(taken == chosen, logs[of] - logs[taken] - logs[of - taken], -np.inf)
        return found

    def hypergeometric(others: NDArray[np.int_], disadvantaged: int) -> NDArray[np.float64]:
        law = log_choose(k - 1, others) + log_choose(n - k, disadvantaged - others)
        likely: NDArray[np.float64] = np.exp(law - law.max())
        likely /= likely.sum()
        return likely

    return int(x[0]), hypergeometric(x - 1, n0 - 1), hypergeometric(x, n0)


@lru_cache(maxsize=4)
def _log_factorials(n: int) -> NDArray[np.float64]:
    # scipy.stats would take a second to load.
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])


def accuracy(one: NDArray[np.float64], zero: NDArray[np.float64], rows: int) -> float:
    """Return the balanced accuracy with which so many independent looks tell two hypotheses apart: 1/2 + TV/2.

    Given are the probabilities of what one look may show under each, of the same shape.
    """
    one, zero = one / one.sum(), zero / zero.sum()
    if rows == 1:
        return float(0.5 + np.abs(one - zero).sum() / 4)
    tiny = 1e-300
    ratios = np.log(np.maximum(one, tiny)) - np.log(np.maximum(zero, tiny))
    both = (one + zero) / 2
    mean, square = float(one @ ratios), float(both @ np.square(ratios))
    reach = rows * max(abs(mean), abs(float(zero @ ratios))) + 10 * math.sqrt(rows * square) + 1e-12
    step = 2 * reach / _BINS
    places = np.clip(ratios / step, -_BINS / 2 + 1, _BINS / 2 - 2)
    # Shared out between two bins, so that means are kept.
    below = np.floor(places)
    above = places - below
    index = below.astype(np.intp) % _BINS

    def summed(law: NDArray[np.float64]) -> NDArray[np.float64]:
        spread = np.bincount(index, law * (1 - above), _BINS) + np.bincount((index + 1) % _BINS, law * above, _BINS)
        power: NDArray[np.float64] = np.fft.irfft(np.fft.rfft(spread) ** rows, _BINS)
        return power

    return float(np.clip(0.5 + np.abs(summed(one) - summed(zero)).sum() / 4, 0.5, 1.0))
