"""Rates of groups from noisy counts (`fairwall.laws.groups.group_counts`): estimates, intervals and comparisons.

**Intervals.** A group's rate is top / bottom, with top and bottom sums over strata (or of scores). Where the exact
rate is p, top - p bottom = 0 exactly, so that of the released numbers top - p bottom = z_top - p z_bottom, whose
distribution is known given p. Fieller's interval, all p for which this number lies within 95% of its distribution,
therefore holds the exact rate with 95%, whatever the table is. Differences and ratios of two rates join two such
intervals by the distance of each end from its estimate and the correlation of their noise, which sums up to 0 (MOVER:
Zou 2007; for ratios Donner and Zou 2012).

**The most favoured group** is not known either. Its rate M is the largest of k: above all of k lower ends, each of
1/k of the error, and below the largest of the upper ends. Impact ratios are rates over M.

**Probabilities** are fiducial: the release less further draws of the noise, cut off at 0, simulates the exact table.
Further noise makes the largest of several rates larger yet, so the probability of a small ratio is too high rather than
too low, by some points where the groups are alike and the noise is not small.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Bools, Floats, Ints
from fairwall.laws.groups.group_counts import SUM_STEP, balanced
from fairwall.laws.noise.quantiles import LEVEL
from fairwall.laws.noise.row_noise import Ball

FOUR_FIFTHS = 0.8

UNDEFINED = "undefined"
"""Word for a number that is 0 over 0 (NaN): a rate of nobody, a ratio where no group has a hit."""

_DRAWS = 4_000
_STRATA_MAX = 48
"""Most strata whose noise is simulated."""
_PEOPLE_MAX = 4
"""Largest expected count for which Fisher's test is used; above, the test of two standard deviations."""
_TABLES = 100
_MISSED = 0.01
"""Probability that the exact table is less likely than those over which the p-value is maximised."""
_POINTS = 17
_READ = 16_000
"""Most draws of which quantiles are read."""


@dataclass(frozen=True, eq=False)
class Share:
    """A released rate by group: a number of people (or a sum of scores) over another.

    Parameters
    ----------
    top, bottom : as released, shape (groups,).
    top_noise, bottom_noise : simulated noise, shape (draws, groups); one row of zeros where there is none.
    everybody : the rate of a group of nobody: that of all people together, which is public; NaN for exact counts.
    merged : the number of original groups in each one, shape (groups,); equal numbers share a noise distribution.
    own_laws : whether each group's noise has its own distribution instead, correlated with the others' as drawn.
    rounding : the largest error of a rate from rounding scores before they are added.
    """

    top: Floats
    bottom: Floats
    top_noise: Floats
    bottom_noise: Floats
    everybody: float
    merged: Ints
    own_laws: bool = False
    rounding: float = 0.0

    @cached_property
    def estimate(self) -> Floats:
        """The rate of each group, cut off at 0 and 1; NaN if all groups are empty."""
        rates = _ratio(self.top, self.bottom, self.everybody)
        return rates if self.bottom.sum() > 0 else np.full_like(rates, math.nan)

    @cached_property
    def draws(self) -> Floats:
        """Simulated exact rates, shape (draws, groups)."""
        return _ratio(self.top - self.top_noise, self.bottom - self.bottom_noise, self.everybody)

    def interval(self, missed: float = 1 - LEVEL) -> tuple[Floats, Floats]:
        """Return the ends of Fieller's interval for each group, in [0, 1]; `missed` is its error probability."""
        low, high = np.empty_like(self.top), np.empty_like(self.top)
        points = np.linspace(0.0, 1.0, _POINTS)
        grid = np.linspace(0.0, 1.0, 2_001)
        laws = np.arange(len(self.merged)) if self.own_laws else self.merged
        for law in np.unique(laws):
            alike = np.flatnonzero(laws == law)
            # The quantile is nearly a norm of (1, -p), which is convex: between two points it is below the chord.
            top_noise, bottom_noise = (
                noise[:, alike].reshape(-1)[:_READ] for noise in (self.top_noise, self.bottom_noise)
            )
            reach = np.array([_quantile(np.abs(top_noise - point * bottom_noise), 1 - missed) for point in points])
            for group in alike:
                top, bottom = self.top[group], self.bottom[group]
                if not reach.any():
                    rate = self.estimate[group]
                    low[group], high[group] = max(rate - self.rounding, 0.0), min(rate + self.rounding, 1.0)
                    continue
                inside = np.abs(top - grid * bottom) <= np.interp(grid, points, reach) + 1e-9 * (1 + abs(bottom))
                found = np.append(grid[inside], self.estimate[group])
                step = 1 / (len(grid) - 1) + self.rounding
                low[group], high[group] = max(found.min() - step, 0.0), min(found.max() + step, 1.0)
        return _beside(np.isnan(self.estimate), low), _beside(np.isnan(self.estimate), high)

    def apart(self, group: int) -> Floats:
        """Return the negated correlation of each group's error in its rate with that of `group`."""
        if not self.own_laws:
            return _apart(self.merged, group)
        errors = self.top_noise - self.estimate * self.bottom_noise
        errors = errors / np.maximum(np.sqrt(np.square(errors).mean(axis=0)), np.finfo(np.float64).tiny)
        found = np.asarray(-(errors * errors[:, [group]]).mean(axis=0))
        found[group] = np.delete(found, group).max(initial=0.0)  # the most favoured group is not known
        return found


def spelled(value: float, form: str = ".3f") -> str:
    """Return a number in this format, or `UNDEFINED`."""
    return UNDEFINED if math.isnan(value) else format(value, form)


def _beside(is_undefined: Bools | bool, values: Floats) -> Floats:
    """Return the values, with NaN where they are certainly undefined."""
    return np.where(is_undefined, math.nan, values)


def merged_share(share: Share, groups: NDArray[np.intp], count: int) -> Share:
    """Join groups of a rate: `groups` has each group's new number, and `count` is the number of new groups."""
    into = _joining(groups, count)
    return Share(
        share.top @ into,
        share.bottom @ into,
        share.top_noise @ into,
        share.bottom_noise @ into,
        share.everybody,
        (share.merged @ into).astype(np.int64),
        share.own_laws,
        share.rounding,
    )


def _joining(groups: NDArray[np.intp], count: int) -> Floats:
    into = np.zeros((len(groups), count))
    into[np.arange(len(groups)), groups] = 1
    return into


@dataclass(frozen=True, eq=False)
class NoisyTable:
    """A released table of counts, shape (strata, groups), and the rate of its noise, infinite for none.

    Rows sum up to the public totals.
    """

    counts: Floats
    rate: float

    def share(self, base: Bools, hits: Bools) -> Share:
        """Return the share of people in the strata `hits` among those in `base`; masks of shape (strata,)."""
        groups = self.counts.shape[1]
        top_noise, rest_noise = noise_of_sums(self.rate, groups, (int(hits.sum()), int((base & ~hits).sum())))
        top, bottom = self.counts[hits].sum(axis=0), self.counts[base].sum(axis=0)
        everybody = top.sum() / bottom.sum() if bottom.sum() and not math.isinf(self.rate) else math.nan
        return Share(top, bottom, top_noise, top_noise + rest_noise, everybody, np.ones(groups, np.int64))

    def mean(self, sums: Floats, rate: float, people: int, total: float) -> Share:
        """Return the mean score of each group, from the number of people and their scores' total.

        Sums, shape (groups,), are of each score less 1/2, as released; the rate is that of their noise, for one
        `SUM_STEP`, infinite for none.
        """
        groups = self.counts.shape[1]
        (size_noise,) = noise_of_sums(self.rate, groups, (len(self.counts),))
        sizes = self.counts.sum(axis=0)
        generator = np.random.default_rng(1)
        noise = balanced(generator, rate, 1 if math.isinf(rate) else _DRAWS, groups) * SUM_STEP
        return Share(
            sums + sizes / 2,
            sizes,
            noise + size_noise / 2,
            np.broadcast_to(size_noise, np.broadcast_shapes(noise.shape, size_noise.shape)),
            math.nan if math.isinf(self.rate) else total / people,
            np.ones(groups, np.int64),
            rounding=SUM_STEP / 2,
        )


@dataclass(frozen=True, eq=False)
class NoisyRows:
    """Released rows of counts of one part of the people (`fairwall.laws.noise.row_noise`).

    `counts`: of people, then of contributions, shape (rows, groups); rows sum up to the public totals. `ball`: their
    noise. `looked`: whether each measure (of all models) looks at these people. `row`, `offset`, `slope`: of each
    measure: its top is the offset times the people's row plus the slope times this row.
    """

    counts: Floats
    ball: Ball
    looked: Bools
    row: NDArray[np.intp]
    offset: Floats
    slope: Floats

    def top(self, measure: int, numbers: Floats) -> Floats:
        """Return a measure's top from two rows, the people's and its own, shape (2, ...)."""
        top: Floats = self.offset[measure] * numbers[0] + self.slope[measure] * numbers[1]
        return top


def share_of_rows(parts: Sequence[NoisyRows], measure: int) -> Share:
    """Return the rate of one measure, by its index in all parts; the parts' noise is independent."""
    tops, bottoms, rounding = [], [], 0.0
    for place, part in enumerate(parts):
        if part.looked[measure]:
            row = int(part.row[measure])
            if part.ball.reaches[row] > 1:
                rounding = max(rounding, abs(float(part.slope[measure])) / 2)
            noise = _noise_of_ball(part.ball, part.ball.reaches[row], place)
            tops.append((part.top(measure, part.counts[[0, row]]), part.top(measure, noise)))
            bottoms.append((part.counts[0], noise[0]))
    groups = parts[0].counts.shape[1]
    if not tops:
        nothing = np.zeros(groups), np.zeros((1, groups))
        tops, bottoms = [nothing], [nothing]
    top, top_noise, bottom, bottom_noise = (
        np.asarray(sum(pair[side] for pair in pairs)) for pairs in (tops, bottoms) for side in (0, 1)
    )
    everybody = top.sum() / bottom.sum() if bottom.sum() else math.nan
    return Share(top, bottom, top_noise, bottom_noise, everybody, np.ones(groups, np.int64), rounding=rounding)


@lru_cache(maxsize=32)
def _noise_of_ball(ball: Ball, reach: int, place: int) -> Floats:
    """Simulate the noise of people and of a row of this reach, shape (2, draws, groups), with a seed for each place."""
    return ball.simulated(np.random.default_rng(place), _DRAWS, reach).astype(np.float64)


def sizes(
    released: Sequence[NoisyTable] | Sequence[NoisyRows], groups: NDArray[np.intp], count: int
) -> tuple[Floats, ...]:
    """Return the number of people in each group, joined as by `merged_share`, from all tables or rows of one request.

    The estimate and both ends of its interval at `LEVEL`, each shape (count,): whole numbers, at least 0.
    """
    into = _joining(groups, count)
    estimates, drawn = _sizes(released, len(groups))
    found, noise, people = estimates @ into, drawn @ into, estimates.sum()
    merged = into.sum(axis=0)
    reach = np.array([_quantile(np.abs(noise[:, merged == each]).reshape(-1), LEVEL) for each in merged])
    low, high = np.maximum(np.ceil(found - reach), 0.0), np.minimum(np.floor(found + reach), people)
    return np.clip(np.rint(found), 0.0, people), low, np.maximum(high, 0.0)


def _sizes(released: Sequence[NoisyTable] | Sequence[NoisyRows], groups: int) -> tuple[Floats, Floats]:
    """Return the number of people in each group, and its simulated noise, shape (draws, groups)."""
    rows = [each for each in released if isinstance(each, NoisyRows)]
    if rows:  # parts are disjoint sets of people
        noise = [_noise_of_ball(part.ball, 1, place)[0] for place, part in enumerate(rows)]
        return np.sum([part.counts[0] for part in rows], axis=0), np.sum(noise, axis=0)
    tables = [each for each in released if isinstance(each, NoisyTable)]
    (drawn,) = noise_of_sums(tables[0].rate, groups, (sum(len(table.counts) for table in tables),))
    return np.mean([table.counts.sum(axis=0) for table in tables], axis=0), drawn / len(tables)


@dataclass(frozen=True, eq=False)
class RateComparison:
    """Rates of groups compared with the most favoured group's.

    Parameters
    ----------
    difference, difference_low, difference_high : the most favoured group's rate less the group's, shape (groups,).
    ratio, ratio_low, ratio_high : the group's rate over the most favoured one's, shape (groups,); NaN where both are 0,
        as are its interval and probability, unless only noise leaves no rate above 0.
    below_four_fifths : P(the exact ratio is below four fifths), shape (groups,).
    """

    difference: Floats
    difference_low: Floats
    difference_high: Floats
    ratio: Floats
    ratio_low: Floats
    ratio_high: Floats
    below_four_fifths: Floats


def compared(share: Share, chosen: Bools) -> RateComparison:
    """Return the chosen groups compared with the most favoured one of them; NaN for other groups."""
    chosen = chosen & ~np.isnan(share.estimate)
    if not chosen.any():
        return RateComparison(*(np.full(len(chosen), math.nan),) * 7)
    rates = np.where(chosen, share.estimate, math.nan)
    low, high = share.interval()
    simultaneous, _ = share.interval((1 - LEVEL) / int(chosen.sum()))
    largest = np.nanmax(rates)
    largest_low, largest_high = simultaneous[chosen].max(), high[chosen].max()
    below, above = rates - low, high - rates
    difference, apart = largest - rates, share.apart(int(np.nanargmax(rates)))
    difference_low = difference - _reach(largest - largest_low, above, apart)
    difference_high = difference + _reach(largest_high - largest, below, apart)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = rates / largest
    drawn = np.where(chosen, share.draws, math.nan)
    favoured = np.where(chosen, share.draws, -math.inf).max(axis=1, keepdims=True)
    nobody = not favoured.any()
    fewer = np.where(chosen, (drawn < FOUR_FIFTHS * favoured).mean(axis=0), math.nan)
    return RateComparison(
        difference,
        np.clip(difference_low, 0.0, 1.0),
        np.clip(difference_high, 0.0, 1.0),
        ratio,
        _beside(nobody, np.clip(_ratio_end(rates, largest, low, largest_high, apart), 0.0, 1.0)),
        _beside(nobody, np.clip(_ratio_end(rates, largest, high, largest_low, apart), 0.0, 1.0)),
        _beside(nobody, fewer),
    )


@dataclass(frozen=True)
class WorstPair:
    """The most and the least favoured group.

    `most`, `least`: the estimated groups. `difference`, `ratio`: the largest rate less the smallest, whichever groups
    have them, and the smallest over the largest, with their intervals. `below`: P(the exact ratio is below four
    fifths).
    """

    most: int
    least: int
    difference: float
    difference_low: float
    difference_high: float
    ratio: float
    ratio_low: float
    ratio_high: float
    below: float


def worst_pair(share: Share, chosen: Bools) -> WorstPair | None:
    """Return the largest rate of the chosen groups compared with the smallest; None for fewer than two groups."""
    among = np.flatnonzero(chosen & ~np.isnan(share.estimate))
    if len(among) < 2:
        return None
    rates = share.estimate[among]
    most, least = rates.argmax(), rates.argmin()
    largest, smallest = float(rates[most]), float(rates[least])
    low, high = (end[among] for end in share.interval())
    all_low, all_high = (end[among] for end in share.interval((1 - LEVEL) / len(among)))
    largest_low, largest_high, smallest_low, smallest_high = all_low.max(), high.max(), low.min(), all_high.min()
    difference, apart = largest - smallest, share.apart(int(among[most]))[among[[least]]]
    ends = np.array([smallest])
    ratio_low = _ratio_end(ends, largest, np.array([smallest_low]), largest_high, apart)
    ratio_high = _ratio_end(ends, largest, np.array([min(smallest_high, 1.0)]), largest_low, apart)
    down = _reach(largest - largest_low, smallest_high - smallest, apart[0])
    up = _reach(largest_high - largest, smallest - smallest_low, apart[0])
    drawn = share.draws[:, among]
    below = (drawn.min(axis=1) < FOUR_FIFTHS * drawn.max(axis=1)).mean()
    ratio = smallest / largest if largest else math.nan
    told = np.array([np.clip(ratio_low, 0.0, 1.0)[0], np.clip(ratio_high, 0.0, 1.0)[0], below])
    told = _beside(not drawn.any(), told)
    return WorstPair(
        int(among[most]),
        int(among[least]),
        difference,
        float(np.clip(difference - down, 0.0, 1.0)),
        float(np.clip(difference + up, 0.0, 1.0)),
        ratio,
        *told.tolist(),
    )


def p_values(share: Share) -> Floats:
    """Return the p-value of each group's rate against everybody else's: the chance of such a distance without a gap.

    For exact counts it is the test of two standard deviations (two proportions, pooled), or Fisher's exact test where
    an expected count is small. The exact counts are not known: the result is the largest p-value but for the 1% least
    likely tables, plus that 1% (Berger and Boos 1994).
    NaN for a group of nobody, or of everybody, and where its rate is undefined.
    """
    exact = len(share.top_noise) == 1 and not share.top_noise.any()
    every = max(len(share.top_noise) // _TABLES, 1)
    bottom = np.rint(np.maximum(share.bottom - share.bottom_noise[::every], 0.0))
    top = np.clip(np.rint(share.top - share.top_noise[::every]), 0.0, bottom)
    people, hits = float(np.rint(share.bottom.sum())), float(np.rint(share.top.sum()))
    bottom = np.minimum(bottom, people)
    # Everybody else cannot have more hits than people.
    top = np.clip(top, np.maximum(0.0, hits - (people - bottom)), np.minimum(bottom, hits))
    found = _tested(top, bottom, hits, people)
    if exact:
        return np.asarray(found[0])
    usual = np.minimum(np.nan_to_num(np.quantile(found, 1 - _MISSED, axis=0), nan=1.0) + _MISSED, 1.0)
    return _beside(np.isnan(share.estimate), usual)


def noise_of_sums(rate: float, groups: int, strata: Sequence[int]) -> list[Floats]:
    """Simulate the noise of sums over disjoint sets of strata, of these sizes: shape (draws, groups) each."""
    if math.isinf(rate) or not sum(strata):
        return [np.zeros((1, groups))] * len(strata)
    drawn = [-(-_STRATA_MAX * each // max(sum(strata), _STRATA_MAX)) for each in strata]
    noise = _simulated(rate, sum(drawn), groups)
    parts = np.split(noise, np.cumsum(drawn)[:-1], axis=1)
    # A sum of more strata than are drawn is nearly normal: only its variance needs correction.
    scales = (math.sqrt(each / part) if part else 0.0 for each, part in zip(strata, drawn, strict=True))
    return [part.sum(axis=1) * scale for part, scale in zip(parts, scales, strict=True)]


@lru_cache(maxsize=8)
def _simulated(rate: float, strata: int, groups: int) -> Ints:
    # The simulation is public and the same each time: a report does not change when it is made again.
    return balanced(np.random.default_rng(0), rate, _DRAWS * strata, groups).reshape(_DRAWS, strata, groups)


def _tested(top: Floats, bottom: Floats, hits: float, people: float) -> Floats:
    from scipy.special import erfc
    from scipy.stats import fisher_exact

    others = people - bottom
    pooled = hits / people if people else math.nan
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt(pooled * (1 - pooled) * (1 / bottom + 1 / others))
        distance = np.abs(top / bottom - (hits - top) / others) / error
        usual: Floats = np.asarray(erfc(distance / math.sqrt(2)))
    smallest = np.minimum(bottom, others) * min(pooled, 1 - pooled)
    few = (smallest <= _PEOPLE_MAX) & (bottom > 0) & (others > 0)
    tables = list(zip(top[few].tolist(), bottom[few].tolist(), strict=True))
    # With few people many tables are equal.
    exactly = {
        (mine, of): fisher_exact([(mine, of - mine), (hits - mine, people - of - (hits - mine))]).pvalue
        for mine, of in set(tables)
    }
    usual[few] = [exactly[table] for table in tables]
    return usual


def _ratio(top: Floats, bottom: Floats, everybody: float) -> Floats:
    """Return rates after cutting negative hits and negative others off at 0."""
    hits, others = np.maximum(top, 0.0), np.maximum(bottom - top, 0.0)
    people = hits + others
    return np.where(people > 0, hits / np.where(people > 0, people, 1.0), everybody)


def _apart(merged: Ints, group: int) -> Floats:
    """Return the negated correlation of each group's noise with that of `group`.

    Of k alike numbers that sum up to 0, sums of a and of b of them have -sqrt(a b / ((k - a) (k - b))).
    """
    own, k = merged[group], merged.sum()
    apart: Floats = np.minimum(np.sqrt(merged * own / np.maximum((k - merged) * (k - own), 1)), 1.0)
    return apart


def _reach(one: float, other: Floats, anticorrelation: Floats) -> Floats:
    """Return the distance of a difference's end from its estimate, from the two rates' distances."""
    return np.sqrt(one**2 + other**2 + 2 * anticorrelation * one * other)


def _ratio_end(rates: Floats, largest: float, end: Floats, other_end: float, anticorrelation: Floats) -> Floats:
    """Return one end of the interval of a ratio of two rates, from the rates' farthest ends (Donner and Zou)."""
    is_lower = other_end >= largest
    slack = other_end * (2 * largest - other_end)
    product = rates * largest + anticorrelation * (rates - end) * (other_end - largest)
    root = np.sqrt(np.maximum(product**2 - end * (2 * rates - end) * slack, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (product - root if is_lower else product + root) / slack
        # Where the denominator may be near 0, MOVER has no end, and the extreme ratio is taken.
        return np.where(slack > 0, found, end / other_end if other_end else (0.0 if is_lower else math.inf))


def reach_of(errors: Floats) -> Floats:
    """Return the `LEVEL` quantile of each column's absolute values, for shape (draws, groups)."""
    return np.array([_quantile(np.abs(column), LEVEL) for column in errors.T])


def _quantile(values: Floats, level: float) -> float:
    """Return a bound that holds for at least this share of all draws, with allowance for simulation error."""
    size = values.size
    safe = min(level + 3 * math.sqrt(level * (1 - level) / size), 1 - 1 / size)
    place = min(math.ceil(safe * size), size - 1)
    return float(np.sort(values)[place])  # far faster than a partition with many ties
