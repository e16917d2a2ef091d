"""Choose the mechanism with the least expected error for one batch, from its predictions and earlier purchases.

`fairwall.laws.choice.prediction` ranks mechanisms from numbers known before the batch. Where its choice adds noise to
gaps, sums or attributes, this module chooses again from the batch's predictions, which the developer knows too: `cells`
exploit models that agree, from `CELLS_FROM` on, and so does `low-rank`, for any number. Nothing here reads A.

Expected errors (`fairwall.laws.choice.posterior.predicted_error`) come from a prior; where the prior is wrong the error
has no bound: with few models `cells` have shrunk large gaps. For very many people, errors are predicted from a part of
them (`AskedBatch.few`); what may be revealed always counts all.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairwall.arrays import Floats
from fairwall.laws.choice.cell_purchases import CellPurchase, planned, predicted, predicted_with
from fairwall.laws.choice.low_rank import best_split
from fairwall.laws.choice.posterior import SHARE, STRUCTURES, directions_of, predicted_error, variances_with_noise
from fairwall.laws.choice.prediction import (
    SHRUNK,
    Promise,
    choose,
    half_widths,
    noise_on_gaps,
    noise_on_sums,
    standings,
)
from fairwall.laws.choice.public_batch import AskedBatch, kept
from fairwall.laws.mechanisms.table import MECHANISM_LAWS
from fairwall.laws.metrics.metric import find_metric
from fairwall.laws.noise.distributions import NoiseDistribution
from fairwall.laws.noise.randomized_response import turning_probability
from fairwall.laws.privacy.exposure import NO_LIMIT, Limit, one_person, revealed

_TIE = 1.03
"""Ratio of two predicted errors below which the mechanisms count as equal."""

CELLS_FROM = 5
"""Smallest number of different models that cells answer, whether bought for the batch or earlier."""

_HALVED = 2.0
"""Ratio by which a mechanism that can do harm must reduce the expected error to be chosen.

Harmful: moving answers of few models towards no gap (has erred 100 times as much where gaps are unusual), publishing A,
and answering without an interval.
"""

_FREE_ERROR = 1.7
"""Largest predicted error of earlier purchases, relative to a new purchase's, at which they answer free.

Measured: 1 to 1.5 for other metrics of the same predictions, 1 to 1.7 for models of the same kind, 2 to 17 for others,
where the actual error has been up to 100 times as large: one model's gap says nothing of another's.
"""
CELLS, LOW_RANK, RESPONSE = "cells", "low-rank", "randomized-response"
_COUNTS, _CUBE = "counts", "cube" + SHRUNK


@dataclass(frozen=True)
class Allowance:
    """The budget, reveal limit and selection criterion of one batch.

    Epsilon is above 0, infinite for exact answers (nothing is chosen then); delta is in [0, 1).
    """

    epsilon: float
    delta: float = 0.0
    limit: Limit = NO_LIMIT
    promise: Promise = "likely"

    def binds(self) -> bool:
        """Return whether the limit is stricter than what pure epsilon guarantees anyway."""
        return self.limit.accuracy < one_person(self.epsilon)

    def reveals(self, batch: AskedBatch, name: str, different: int | None = None) -> float:
        """Return the balanced accuracy that answers to a batch reveal; with `different` coordinates if given."""
        about = batch.metric, batch.exposed, batch.queries
        return revealed(name, *about, self.epsilon, self.delta, self.limit.shares, different=different)


@dataclass(frozen=True)
class Choice:
    """The chosen mechanism (a row of `standings`, or cells), its epsilon, and its predicted error.

    `error` is a standard deviation, or the half-width of guaranteed intervals where these decide; infinite where
    nothing was compared. A choice that is not `is_within` the limit reveals least.
    """

    name: str
    error: float
    epsilon: float
    is_within: bool

    @property
    def median_error(self) -> float:
        """The median absolute error of a normal error with this standard deviation."""
        return _MEDIAN * self.error


def best(metric: str, people: int, queries: int, allowance: Allowance, exposed: int | None = None) -> str:
    """Return the first row of `standings` from public sizes, before the batch is known. See `standings.choose`."""
    spent, limit = (allowance.epsilon, allowance.delta), allowance.limit
    return choose(metric, people, queries, *spent, limit.shares, limit, exposed, allowance.promise)


@kept
def best_for(batch: AskedBatch, allowance: Allowance) -> Choice:
    """Return the choice with the least error within the limit, over epsilons up to the allowance's.

    A larger epsilon can give a worse answer where the limit then excludes more mechanisms. Epsilons are tried on a grid
    of ratio `_RUNG`, from where the limit excludes nothing, then refined around the best.
    """
    limit, row = allowance.limit, best(batch.metric, batch.people, batch.queries, allowance, batch.exposed)
    asked = nearest(batch, row, allowance)
    if not allowance.binds():
        return asked
    unlimited = replace(allowance, limit=replace(limit, accuracy=NO_LIMIT.accuracy))
    if asked.is_within and asked.error <= nearest(batch, row, unlimited).error:
        return asked
    found = [asked]

    def least(epsilons: Iterable[float]) -> Choice:
        """Try smaller epsilons too; return the best so far, or the allowance's choice if none is within."""
        found.extend(nearest(batch, row, replace(allowance, epsilon=each)) for each in epsilons if each < asked.epsilon)
        return min((one for one in found if one.is_within), key=lambda one: one.error, default=asked)

    smallest = max(math.log(limit.accuracy / (1 - limit.accuracy)) / 2, _LEAST_SPENT)
    chosen = least(smallest * _RUNG**k for k in range(math.ceil(math.log(allowance.epsilon / smallest, _RUNG))))
    for nearer in _NEARER:
        chosen = least((chosen.epsilon / nearer, chosen.epsilon * nearer))
    return chosen


def is_told(batch: AskedBatch, purchases: Sequence[CellPurchase], allowance: Allowance) -> bool:
    """Return whether earlier purchases answer this batch within `_FREE_ERROR` of a new purchase.

    They must have been bought at the allowance's epsilon or more. The best single one decides: later purchases never
    make a free answer cost.
    """
    if not purchases or not _may_be_cells(batch) or allowance.promise == "guaranteed":
        return False
    few = batch.few
    purchases = purchases if few.drawn is None else [one.of(few.drawn) for one in purchases]
    *told, anew = predicted_with(few, [*purchases, planned(few, allowance.epsilon, allowance.limit)])
    others = {_COUNTS: _error_of_noise(batch, _COUNTS, allowance), **_contenders(batch, allowance)}
    del others[CELLS]
    return min(told) <= _FREE_ERROR * min(anew, *others.values())


def best_for_search(batch: AskedBatch, allowance: Allowance) -> Choice:
    """Return the choice for a searched batch, and the expected error of the models left at the end.

    Cells in rounds (`in_rounds`), or one cube for all where that errs less. Other mechanisms give no joint distribution
    of gaps, and answer only where there are too few models for cells, or no cells may be trusted. The epsilon spent is
    that of the same batch without a search.
    """
    plain = best_for(batch, allowance)
    if allowance.promise == "guaranteed" or not _may_be_cells(batch):
        return plain
    spent = replace(allowance, epsilon=plain.epsilon, delta=0.0)
    rounds, of_cube = _error_of_rounds(batch, spent), _contenders(batch, spent).get(_CUBE, math.inf)
    if math.isinf(rounds):
        return plain
    name, error = (_CUBE, of_cube) if of_cube < rounds else (CELLS, rounds)
    return Choice(name, error, spent.epsilon, is_within=True)


def in_rounds(queries: int, epsilon: float, limit: Limit) -> tuple[list[int], float]:
    """Return the numbers of candidates left after each round but the last, and the epsilon of each round.

    One round where a reveal limit binds.
    """
    left = [each for each in _LEFT if each < queries and limit.accuracy >= one_person(epsilon)]
    return left, math.nextafter(epsilon / (len(left) + 1), 0.0) if left else epsilon


def _error_of_rounds(batch: AskedBatch, allowance: Allowance) -> float:
    """Predict the error of the models left at the end: (sum of e^-2)^(-1/2) over rounds, times `_LEFT_OVER`.

    Models spread evenly over the batch stand in for the unknown survivors, which survived because noise shrank their
    gaps.
    """
    few, (left, epsilon), information = batch.few, in_rounds(batch.queries, allowance.epsilon, allowance.limit), 0.0
    for count in (batch.queries, *left):
        some = np.linspace(0, batch.queries - 1, count).round().astype(np.intp)
        asked = few if count == batch.queries else replace(few, predictions=few.predictions[some])
        error = predicted(asked, epsilon, allowance.limit, besides=not left)
        information += max(error, _LEAST) ** -2
    return _LEFT_OVER * information**-0.5 if information > 0 else math.inf


def nearest(batch: AskedBatch, name: str, allowance: Allowance) -> Choice:
    """Return the mechanism with the least predicted error for this batch: `name`, or a contender.

    All contenders cost epsilon alone. Only mechanisms that add noise to gaps, sums or attributes have contenders;
    epsilon is finite.
    """
    if allowance.promise == "guaranteed":
        return _surest(batch, name, allowance)
    if name != RESPONSE and not is_purely_noisy(name.removesuffix(SHRUNK)):
        return Choice(name, math.inf, allowance.epsilon, _reveals_little(batch, name, allowance))
    allowance = replace(allowance, delta=0.0)
    # Counts are shrunk one by one, by less than joint models: for similar models a limit excludes everything else.
    errors = {name: _error_of_noise(batch, name, allowance, shrinks=not allowance.binds())}
    errors |= _contenders(batch, allowance)
    if name != RESPONSE and not allowance.binds():
        errors[RESPONSE] = _HALVED * _error_of_noise(batch, RESPONSE, allowance)
    if name == RESPONSE or MECHANISM_LAWS[name.removesuffix(SHRUNK)].interval is None:
        errors[name] *= _HALVED  # publishes A, or has no interval and sometimes errs far more
    if allowance.binds() and math.isfinite(errors[CELLS]) and not _is_worth_it(batch, name, allowance):
        # Few enough cells stay within the limit where no other mechanism does, or none worth its price.
        del errors[name]
    least = _least(batch, errors, allowance)
    is_within = least != name or _reveals_little(batch, name, allowance)
    return Choice(least, errors[least], allowance.epsilon, is_within)


def _least(batch: AskedBatch, errors: Mapping[str, float], allowance: Allowance) -> str:
    """Return the name with the least error; cells if they tie, or if they also answer other metrics of these models."""
    least = min(errors, key=lambda one: errors[one])
    if errors[CELLS] <= _TIE * errors[least]:
        least = CELLS  # their counts answer later batches free
    # Cells by label answer the other metrics of these models free; any other mechanism answers this metric alone.
    of_several = len({find_metric(metric).strata for metric in batch.metrics}) > 1
    if of_several and math.isfinite(errors[CELLS]):
        (of_cells,) = predicted_with(batch.few, [planned(batch.few, allowance.epsilon, allowance.limit)])
        return CELLS if of_cells <= _FREE_ERROR * errors[least] else least
    return least


@kept
def _surest(batch: AskedBatch, name: str, allowance: Allowance) -> Choice:
    """Return the mechanism with the least guaranteed half-width within the limit; `name` if there is none."""
    limit, names = allowance.limit, [name]
    if not allowance.binds():
        names.append(RESPONSE)
    if allowance.reveals(batch, _COUNTS) <= limit.accuracy or not allowance.binds():
        names.append(_COUNTS)
    cubes = (_CUBE.removesuffix(SHRUNK), *([LOW_RANK] if _may_be_split(batch) else []))
    names += [each for each in cubes if _is_within(batch, each, allowance)]
    spent = allowance.epsilon, allowance.delta, limit.shares
    widths = {each: half_widths(batch.few, each, *spent) for each in names}
    plain = [widths[each] for each in (_COUNTS, _CUBE.removesuffix(SHRUNK)) if each in widths] or list(widths.values())
    ratios = {each: np.log((width + _LEAST) / (np.min(plain, axis=0) + _LEAST)) for each, width in widths.items()}
    # Group size and gap are unknown: no mechanism wins by being mostly narrower if it is sometimes wider.
    least = min(
        names,
        key=lambda contender: (max(float(ratios[contender][1].max()), _AS_NARROW), float(ratios[contender][0].mean())),
    )
    is_within = least != name or _reveals_little(batch, name, allowance)
    return Choice(least, float(np.mean(widths[least])), allowance.epsilon, is_within)


def _is_worth_it(batch: AskedBatch, name: str, allowance: Allowance) -> bool:
    """Return whether a row of `standings` stays within the limit and errs no more than the midpoint."""
    asked = batch.metric, batch.people, batch.queries, allowance.epsilon, 0.0, allowance.limit.shares
    worth = name.endswith(SHRUNK) or any(row.name == name and row.worst_ratio <= 1 for row in standings(*asked))
    return worth and _reveals_little(batch, name, allowance)


def _reveals_little(batch: AskedBatch, name: str, allowance: Allowance) -> bool:
    """Return whether a row of `standings` stays within the limit."""
    return not allowance.binds() or allowance.reveals(batch, name.removesuffix(SHRUNK)) <= allowance.limit.accuracy


def is_purely_noisy(name: str) -> bool:
    """Return whether a mechanism adds noise to gaps or sums, and needs no delta."""
    law = MECHANISM_LAWS[name]
    return law.noise_on in ("gaps", "sums") and not law.needs_delta


@kept
def _contenders(batch: AskedBatch, allowance: Allowance) -> dict[str, float]:
    """Predict the errors of cells (infinite if unusable) and of one and two cubes if within the limit."""
    may_be_cells = _may_be_cells(batch)
    errors = {CELLS: math.inf}
    if may_be_cells:
        errors[CELLS] = predicted(batch.few, allowance.epsilon, allowance.limit)
    if _may_be_split(batch) and _is_within(batch, LOW_RANK, allowance):
        errors[LOW_RANK] = _error_of_noise(batch, LOW_RANK, allowance, shrinks=False)
    if _is_within(batch, _CUBE.removesuffix(SHRUNK), allowance):
        error, unshrunk = (_error_of_noise(batch, _CUBE, allowance, shrinks=each) for each in (True, False))
        shrinks = may_be_cells or unshrunk > _HALVED * error
        errors[_CUBE if shrinks else _CUBE.removesuffix(SHRUNK)] = error
    return errors


@kept
def _may_be_cells(batch: AskedBatch) -> bool:
    """Return whether a batch has at least `CELLS_FROM` different models."""
    return len({model.tobytes() for model in batch.few.predictions}) >= CELLS_FROM


def _may_be_split(batch: AskedBatch) -> bool:
    """Return whether a batch fits into memory several times, as two cubes need; a larger one has little noise."""
    return batch.few is batch or batch.predictions.size <= _SPLIT


@kept
def _is_within(batch: AskedBatch, name: str, allowance: Allowance) -> bool:
    """Return whether one or two cubes stay within the limit, for any batch of this size or for this one."""
    most = allowance.limit.accuracy
    if not allowance.binds() or allowance.reveals(batch, name) <= most:
        return True
    different = set()
    for stratum in batch.strata:
        if name == LOW_RANK:
            split = best_split(stratum.inside, allowance.epsilon, _STEP, size_known=False)
            different.add(len(split.common) + split.own.sides)
        else:
            different.add(stratum.coordinates(_STEP).sides)
    return all(allowance.reveals(batch, name, each) <= most for each in different)


def _error_of_noise(batch: AskedBatch, name: str, allowance: Allowance, *, shrinks: bool = True) -> float:
    """Predict the error of noise on each gap, or on N0 and each sum, as of Gaussian noise with the same median."""
    batch = batch.few
    m, epsilon, shares = batch.queries, allowance.epsilon, allowance.limit.shares
    errors = []
    for number, stratum in enumerate(batch.strata):
        # The first of two parts stands for both.
        n, of_size = stratum.people, 0.0
        mechanism = name.removesuffix(SHRUNK)
        if MECHANISM_LAWS[mechanism].noise_on == "gaps":
            law = noise_on_gaps(batch, stratum, mechanism, epsilon, 0.0, shares)
            noise = (_size(law) * SHARE * (1 - SHARE) * n) ** 2
        elif name == RESPONSE:
            p = turning_probability(epsilon)
            of_person = p * (1 - p) / max((1 - 2 * p) ** 2, _LEAST)
            noise, of_size = of_person * float(np.diag(stratum.gram)[:m].mean()), of_person * n
        else:
            of_size, of_sums = noise_on_sums(stratum, mechanism, epsilon, 0.0, _size, m)
            noise = float(of_sums.mean())
        variances = variances_with_noise(_squares(batch, number), m, noise, n) if shrinks else [noise] * len(STRUCTURES)
        errors.append(predicted_error(variances, of_size, n))
    return sum(errors) / len(errors)


@kept
def _squares(batch: AskedBatch, number: int) -> Floats:
    """Return the eigenvalues l (`directions_of`) of the models' values in one stratum."""
    return directions_of(batch.strata[number].gram[: batch.queries, : batch.queries])[0]


def _size(law: NoiseDistribution) -> float:
    """Return the deviation of Gaussian noise with the same median absolute value."""
    return law.median_abs() / _MEDIAN


_LEFT = (8, 2)
"""Numbers of candidates left after each round."""

_LEFT_OVER = 1.25
"""Ratio by which selected candidates err more; 1.0 to 1.8 for 8 trees and 20 thresholds, 1,000 and 10,000 of Adult."""

_RUNG, _NEARER = 2.0, (2.0**0.5, 2.0**0.25)
"""Ratio of neighbouring epsilons on the first grid; `_NEARER`: ratios of the refinement steps around the best."""

_LEAST_SPENT = 2.0**-5
"""Smallest epsilon tried where a limit binds at every epsilon."""

_SPLIT = 2**23
"""Most predictions of a batch that two cubes answer."""

_AS_NARROW = 0.05
"""Log-ratio of half-widths below which two intervals count as equally narrow: 5%."""

_STEP = 2.0**-20
"""Step of a grid as fine as any on which noise is drawn."""

_LEAST = 1e-30
"""Smallest divisor."""

_MEDIAN = 0.6745
"""Median absolute value of a standard normal number."""
