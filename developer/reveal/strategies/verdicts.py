r"""Reveal from verdicts alone: for each row one bit, whether its absolute gap is above a public limit, theta.

Remark 2 of the paper leaves open what bits leak (Hamman, Chen, Dutta, FAccT 2023). They leak everybody: for a row whose
gap lies at the limit, a verdict compares two numbers, and with chosen numbers every verdict halves the possibilities.
No verdict tells which group is advantaged, since exchanging the groups turns all signs and no verdict. So the result is
a partition into P and M, with the smaller group named disadvantaged, as for absolute gaps.

Four steps. Write u_j for the weights of a row, c = 1/N_P + 1/N_M, z_j = 1 for the people of M, and SP for the mean over
P minus that over M, so that ``SP = sum(u)/N_P - c sum(u z)``.

1. *A row that fails.* A 0/1 row h that accepts T people, T near n/2: the halves that the base model ranks first, then
   random ones. Let P be the favoured group: ``g = SP(h) > theta``. That takes luck where groups are large and h0 is
   unrelated to them: nothing is learnt before the first row fails.
2. *Its gap.* ``SP(alpha h) = alpha g``, so alpha = theta/t asks whether g > t. Of all pairs of N_M and of x, the number
   of M accepted, those with gaps above theta are kept; a median split of their probability (N_M uniform, x
   hypergeometric) finds g. Where T has no divisor in common with n few pairs have the same gap: ``g = (T N_M - n x) /
   (N_P N_M)``, and for two of them equality means, modulo n, that n divides ``T N_M N_M' (N_M - N_M')``; for a prime
   n, none.
3. *The sizes*, where several pairs are left: add s to the weight of one person whom h rejects. The gap is
   ``g + s/N_P`` or ``g - s/N_M``, which differ for all sizes. With s small enough all of these are above theta.
4. *Everybody.* People of h = 0 hold N_M - x of M; those of h = 1 hold x. In each part the possible worlds are ranked,
   in the lexicographic order of z: a z is a number in the combinatorial number system, and a split in the middle of
   the remaining ranks is a comparison with the z' of a certain rank. With weights rho 2^-i on the i-th person of a
   window (known people before it are left out, people after it are rejected), ``X = sum(2^-i z_i)`` orders as z does,
   so the verdict shall tell whether X >= tau, half a unit below X'. In the first part,

       SP = beta g + rho (W/N_P - c X)   is above theta   iff   X < tau,   for   beta g = theta - rho (W/N_P - c tau);

   in the second, with the known people of M among h = 0 at beta, a share k of M, which is at least g,

       -SP = beta k + rho (c X - W/N_P)  is above theta   iff   X >= tau,  for   beta k = theta + rho (W/N_P - c tau).

   With rho c <= g - theta, beta is in [0, 1]; with rho c <= theta the other side of the limit is never met. The window
   is short enough that half a unit, rho c 2^-(L+1), is a thousand times the rounding of a float64 gap.

Where g is too close to theta for that, step 1 goes on with another row. Splitting at ranks takes ``log2`` of the number
of worlds and at most a few verdicts more, since step 4 profits from step 2. Everybody takes 50 to 56 verdicts at n =
100, N0 = 10 (log2 C(n, N0) is 44), and 485 to 534 at n = 1000, N0 = 104 (477), 20 seeds each. Rows are free here, as
steps 1 and 4 need weights at 0 and 1; within a bound around h0 they would need a gap of h0 near the limit.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from developer.reveal.strategies.one_by_one import OneByOne, OutOfQueries, log_choose
from developer.reveal.strategies.strategy import Reveal, StrategyInputs, everyone
from fairwall.arrays import Floats, Ints

THRESHOLD = 0.1
"""The default of the limit that audits publish."""

_ALIKE = 1e-12
"""Distance of two gaps below which a verdict would measure rounding."""

_LEAST_STEP = 2.0**-42
"""Smallest difference of two gaps that a verdict is used to separate."""

_LEAST_WINDOW = 8
"""Fewest people whom a row must be able to split."""


_Fails = Callable[[Floats], bool]
"""A function that queries the verdict about one row, (n,)."""


@dataclass
class _Open:
    """People of whom only the number in M is known."""

    people: Ints
    count: int


@dataclass
class _Known:
    """The knowledge so far: (n,) with 1 in M, 0 in P, -1 open; the size of M; and the open people."""

    in_m: NDArray[np.int8]
    n_m: int = 0
    parts: tuple[_Open, ...] = ()


def play(inputs: StrategyInputs, threshold: float = THRESHOLD) -> Reveal:
    """Partition everyone, or as many as the queries allow; the others are guessed by the base model's scores."""
    if not threshold > 0:
        raise ValueError("verdicts are calibrated at a limit above 0")
    if inputs.perturbation < 1:
        raise ValueError("strategy verdicts needs free rows: a perturbation of 1")
    known = _Known(np.full(inputs.people, -1, np.int8))
    with suppress(OutOfQueries):
        _find_out(inputs, threshold, known)
    return _guess(inputs, known)


def _find_out(inputs: StrategyInputs, threshold: float, known: _Known) -> None:
    n, verdicts = inputs.people, OneByOne(inputs)

    def fails(row: Floats) -> bool:
        return verdicts.ask(row) > 0.5

    row, n_m, x = _calibrated(inputs, fails, threshold)
    n_p, c = n - n_m, 1 / n_m + 1 / (n - n_m)
    gap = _gap(n, row, n_m, x)
    step = _step(n, n_m, threshold, gap)
    rho = step / c
    rejected, accepted = _Open(np.flatnonzero(row == 0), n_m - x), _Open(np.flatnonzero(row == 1), x)
    known.n_m, known.parts = n_m, (rejected, accepted)

    def first(weights: Floats, tau: float) -> bool:
        beta = (threshold - rho * (weights.sum() / n_p - c * tau)) / gap
        return not fails(np.clip(beta * row + rho * weights, 0, 1))

    def second(weights: Floats, tau: float) -> bool:
        lever = (known.in_m == 1) & (row == 0)
        beta = (threshold + rho * (weights.sum() / n_p - c * tau)) * n_m / np.count_nonzero(lever)
        return fails(np.clip(beta * lever + rho * weights, 0, 1))

    window = int(math.log2(step / _LEAST_STEP))
    _search(known, rejected, window, first)
    _search(known, accepted, window, second)


def _calibrated(inputs: StrategyInputs, fails: _Fails, threshold: float) -> tuple[Floats, int, int]:
    """Return a 0/1 row whose gap is above the limit, the size of M, and the number of M accepted (steps 1 to 3)."""
    for row in _halves(inputs):
        if fails(row):
            for n_m, x in _sizes(fails, row, threshold, inputs.terms.n0):
                return row, n_m, x
    raise AssertionError("there is always another half")


def _halves(inputs: StrategyInputs) -> Iterator[Floats]:
    n = inputs.people
    coprime = min((t for t in range(1, n) if math.gcd(t, n) == 1), key=lambda t: abs(2 * t - n))
    orders = [np.argsort(-inputs.base(), kind="stable")]
    if inputs.llr is not None:
        orders.insert(0, np.argsort(inputs.llr(), kind="stable"))
    for i, order in enumerate(itertools.chain(orders, (inputs.rng.permutation(n) for _ in itertools.count()))):
        row = np.zeros(n)
        # For n = 6 the coprime half accepts one person, or all but one: never a large gap.
        row[order[: (n // 2 if i % 4 == 3 else coprime)]] = 1
        yield row


def _gap(n: int, row: Floats, n_m: int, x: int) -> float:
    return (int(row.sum()) * n_m - n * x) / ((n - n_m) * n_m)


def _step(n: int, n_m: int, threshold: float, gap: float) -> float:
    """Return the change of the gap, rho c, if a person of weight rho moves from P to M."""
    return min(1 / n_m + 1 / (n - n_m), threshold, gap - threshold)


def _sizes(fails: _Fails, row: Floats, threshold: float, n0: int | None) -> Iterator[tuple[int, int]]:
    """Yield the size of M and the number of M accepted by the row, or nothing where rounding prevents it."""
    n = row.size
    n_m, x, likely = _worlds(n, int(row.sum()), n0)
    gaps = (row.sum() * n_m - n * x) / ((n - n_m) * n_m)
    fits = gaps > threshold - _ALIKE  # rounding may have turned the verdict
    n_m, x, gaps, likely = n_m[fits], x[fits], gaps[fits], likely[fits]
    if not gaps.size:
        return
    # Weighted both by probability and by number, so that an unlikely world takes only a few verdicts more.
    found = _located(gaps, likely / likely.sum() + 1 / likely.size, lambda t: fails(threshold / t * row))
    n_m, x, gap = n_m[found], x[found], float(gaps[found[0]])
    if _step(n, int(n_m[0]), threshold, gap) < _LEAST_STEP * 2**_LEAST_WINDOW:
        return
    if n_m.size > 1:
        s = min(1.0, (gap - threshold) * n_m.min() / 2)
        toggled = row.copy()
        toggled[np.argmin(row)] = s
        either = np.concatenate([gap + s / (n - n_m), gap - s / n_m])
        at = _located(either, np.ones(either.size), lambda t: fails(threshold / t * toggled)) % n_m.size
        n_m, x = n_m[at], x[at]
    if n_m.size == 1:
        yield int(n_m[0]), int(x[0])


def _worlds(n: int, accepted: int, n0: int | None) -> tuple[Ints, Ints, Floats]:
    """Return all sizes of M, all numbers of M accepted for which P is favoured, and the pairs' likelihoods."""
    sizes = np.arange(1, n) if n0 is None else np.unique([n0, n - n0])
    least = np.maximum(0, accepted - (n - sizes))
    most = (accepted * sizes - 1) // n  # x/N_M below T/n
    numbers = np.maximum(most - least + 1, 0)
    n_m = np.repeat(sizes, numbers)
    x = np.arange(numbers.sum()) - np.repeat(np.cumsum(numbers) - numbers - least, numbers)
    return n_m, x, np.exp(log_choose(accepted, x) + log_choose(n - accepted, n_m - x) - log_choose(n, n_m))


def _located(values: Floats, weights: Floats, above: Callable[[float], bool]) -> Ints:
    """Find the true value by splits near the middle of the weights; return the indices of all equal values."""
    order = np.argsort(values, kind="stable")  # else the order of equal ones depends on the processor
    ranked = values[order]
    starts = np.flatnonzero(np.diff(ranked, prepend=-math.inf) > _ALIKE)  # of the runs of equal values
    reached = np.concatenate([[0.0], np.cumsum(np.add.reduceat(weights[order], starts))])
    low, high = 0, starts.size
    while high - low > 1:
        middle = int(np.searchsorted(reached, (reached[low] + reached[high]) / 2))
        # The split that is nearer to the middle, of the two around it.
        middle -= bool(reached[middle] + reached[middle - 1] > reached[low] + reached[high])
        middle = min(max(middle, low + 1), high - 1)
        if above(float(ranked[starts[middle] - 1] + ranked[starts[middle]]) / 2):
            low = middle
        else:
            high = middle
    end = starts[low + 1] if low + 1 < starts.size else ranked.size
    return order[starts[low] : end]


def _search(known: _Known, part: _Open, window: int, at_least: Callable[[Floats, float], bool]) -> None:
    """Identify the people of a part that are in M (step 4); ``at_least(weights, tau)`` queries whether X >= tau."""
    worlds = math.comb(part.people.size, part.count)
    low, high = 0, worlds  # ranks among the worlds of the people still open
    while part.people.size:
        person, r = part.people[0], part.people.size
        without = worlds * (r - part.count) // r  # the worlds whose first person is of P; they come first
        if high <= without or low >= without:
            known.in_m[person] = low >= without
            if low >= without:
                low, high, worlds = low - without, high - without, worlds - without
                part.count -= 1
            else:
                worlds = without
            part.people = part.people[1:]
            continue
        bits, rank, alike = _prefix((low + high) // 2, worlds, r, part.count, window)
        # Worlds with these first bits have ranks from `rank` on; the split is before or behind them.
        behind = rank <= low or (rank + alike < high and low + high > 2 * rank + alike)
        units = 2.0 ** -np.arange(1, len(bits) + 1)
        weights = np.zeros(known.in_m.size)
        weights[part.people[: len(bits)]] = units
        tau = float(units @ bits) + (0.5 if behind else -0.5) * units[-1]
        split = rank + alike if behind else rank
        if at_least(weights, tau):
            low = split
        else:
            high = split


def _prefix(rank: int, worlds: int, people: int, of_m: int, length: int) -> tuple[list[int], int, int]:
    """Return the first bits of the world at a rank, the lowest rank with these bits, and the number of such worlds."""
    bits: list[int] = []
    least = 0
    for r in range(people, max(people - length, 0), -1):
        without = worlds * (r - of_m) // r
        bits.append(int(rank - least >= without))
        if bits[-1]:
            least, worlds, of_m = least + without, worlds - without, of_m - 1
        else:
            worlds = without
    return bits, least, worlds


def _guess(inputs: StrategyInputs, known: _Known) -> Reveal:
    if not known.n_m:
        return replace(everyone(inputs.prior() == 1), polarity_known=False)
    n, scores, in_m = inputs.people, inputs.base(), known.in_m == 1
    if inputs.terms.n0 is None or 2 * inputs.terms.n0 == n:
        told = 2 * known.n_m != n
        # Equal sizes decide nothing; the prior guess, too, assumes that h0 ranks the advantaged higher.
        advantaged_p = 2 * known.n_m < n if told else _ranked_lower(scores, known)
    else:
        told, advantaged_p = True, known.n_m == inputs.terms.n0
    for part in known.parts:
        by_score = part.people[np.argsort(scores[part.people] if advantaged_p else -scores[part.people], kind="stable")]
        in_m[by_score[: part.count]] = True
    return replace(everyone(in_m != advantaged_p), polarity_known=told)


def _ranked_lower(scores: Floats, known: _Known) -> bool:
    """Return whether h0 scores M, as far as known, lower than P."""
    m, p = scores[known.in_m == 1], scores[known.in_m == 0]
    return bool(m.size and p.size and m.mean() <= p.mean())
