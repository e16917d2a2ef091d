"""Which mechanism errs least about one batch, by its predictions and what was bought before; nobody looks at A.

`fairwall.laws.standings` chooses by numbers that are known before the batch is. Where it names a mechanism that adds
noise to gaps, sums or attributes, the batch's predictions, which are public to who asks, choose once more here: `cells`
serve models that agree, from `CELLS_FROM` on, and so does `low-rank`, of any number. What errs least by a prior's
prediction may err more where the prior is wrong, and how much more has no bound: of few models `cells` have shrunk
large gaps. Errors are predicted by `fairwall.laws.posterior.predicted_error`, of very many people by a part of them
(`AskedBatch.few`); what may be revealed is a matter of all.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fairwall.laws.batch import AskedBatch, kept
from fairwall.laws.exposure import NO_LIMIT, Limit, one_person, revealed
from fairwall.laws.low_rank import best_split
from fairwall.laws.mechanisms import MECHANISM_LAWS
from fairwall.laws.metric import find_metric
from fairwall.laws.noise import Law
from fairwall.laws.posterior import SHARE, STRUCTURES, directions_of, predicted_error, variances_with_noise
from fairwall.laws.purchases import Purchase, planned, predicted, predicted_with
from fairwall.laws.response import turning_probability
from fairwall.laws.standings import SHRUNK, Promise, choose, standings
from fairwall.laws.widths import half_widths, noise_on_gaps, noise_on_sums

_TIE = 1.03
"""Predictions of errors this close say nothing of which is less."""

CELLS_FROM = 5
"""Of so many different models cells answer a batch, whether bought for it or before, and of no fewer."""

_HALVED = 2.0
"""How many times the error must be promised for something to be chosen that can do harm.

That is, to move answers of fewer models towards no gap, which has erred a hundred times as much where gaps are not as
usual; to publish A; and to answer without an interval.
"""

_FREE_ERROR = 1.7
"""How many times the error of a purchase cells that were bought before may have, to answer in its place for nothing.

Predicted of other metrics of the same predictions are 1 to 1.5 times, of models of the same kind 1 to 1.7 times, of
others 2 to 17 times; then the error has been up to 100 times as large: one model's gap says nothing of another's.
"""
CELLS, LOW_RANK, RESPONSE = "cells", "low-rank", "randomized-response"
_COUNTS, _CUBE = "counts", "cube" + SHRUNK


@dataclass(frozen=True)
class Allowance:
    """What a batch may spend, what it may reveal, and by what is chosen: one value, made once, for all that choose.

    Epsilon is above 0, infinite for exact answers, where nothing is chosen, and delta in [0, 1).
    """

    epsilon: float
    delta: float = 0.0
    limit: Limit = NO_LIMIT
    promise: Promise = "likely"

    def binds(self) -> bool:
        """Say whether the limit is below what a pure epsilon allows in any case."""
        return self.limit.accuracy < one_person(self.epsilon)

    def reveals(self, batch: AskedBatch, name: str, different: int | None = None) -> float:
        """Return what a mechanism's answers to a batch would reveal; of so many different models, if told. Public."""
        about = batch.metric, batch.exposed, batch.queries
        return revealed(name, *about, self.epsilon, self.delta, self.limit.shares, different=different)


@dataclass(frozen=True)
class Choice:
    """What answers a batch: a row of `standings`, or cells.

    Its predicted error, or the half-width of its guaranteed intervals where these decide, is infinite where nothing
    contends; it spends so much epsilon; and it stays within what may be revealed, or gives away least.
    """

    name: str
    error: float
    epsilon: float
    is_within: bool

    @property
    def median_error(self) -> float:
        """The median of what a normal error of that deviation is off by."""
        return _MEDIAN * self.error


def best(metric: str, people: int, queries: int, allowance: Allowance, exposed: int | None = None) -> str:
    """Return the row of `standings` that comes first, before anything is known of the batch. See `standings.choose`."""
    spent, limit = (allowance.epsilon, allowance.delta), allowance.limit
    return choose(metric, people, queries, *spent, limit.shares, limit, exposed, allowance.promise)


@kept
def best_for(batch: AskedBatch, allowance: Allowance) -> Choice:
    """Return what answers this very batch: of epsilons up to the allowance's, where least error is within its limit.

    Where a limit leaves less to choose from at a larger epsilon, that would buy a worse answer. What is tried is apart
    by `_RUNG`, from where the limit binds nothing, and then more narrowly beside the best of these.
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
        """Try smaller epsilons besides, and return the best of all so far: what was asked for, if none is within."""
        found.extend(nearest(batch, row, replace(allowance, epsilon=each)) for each in epsilons if each < asked.epsilon)
        return min((one for one in found if one.is_within), key=lambda one: one.error, default=asked)

    smallest = max(math.log(limit.accuracy / (1 - limit.accuracy)) / 2, _LEAST_SPENT)
    chosen = least(smallest * _RUNG**k for k in range(math.ceil(math.log(allowance.epsilon / smallest, _RUNG))))
    for nearer in _NEARER:
        chosen = least((chosen.epsilon / nearer, chosen.epsilon * nearer))
    return chosen


def is_told(batch: AskedBatch, bought: Sequence[Purchase], allowance: Allowance) -> bool:
    """Say whether cells that were bought tell nearly as much of a batch's models as a purchase of its own would.

    Those were bought at the allowance's epsilon or more, which a purchase of the batch's own might spend. The best of
    them counts, by itself: what is free stays free, whatever else is bought.
    """
    if not bought or not _may_be_cells(batch) or allowance.promise == "guaranteed":
        return False
    few = batch.few
    bought = bought if few.drawn is None else [one.of(few.drawn) for one in bought]
    *told, anew = predicted_with(few, [*bought, planned(few, allowance.epsilon, allowance.limit)])
    others = {_COUNTS: _error_of_noise(batch, _COUNTS, allowance), **_contenders(batch, allowance)}
    del others[CELLS]
    return min(told) <= _FREE_ERROR * min(anew, *others.values())


def best_for_search(batch: AskedBatch, allowance: Allowance) -> Choice:
    """Return what answers a batch that is searched, and the error to expect of the models that are left in the end.

    Cells in rounds (`in_rounds`), or one cube for all where that errs less: of what else may answer nobody knows how
    gaps go together, and it answers only where models are too few for cells, or none may be believed. It spends what
    the batch would that is not searched.
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
    """Return how many candidates are left after each round but the last one, and what epsilon each round spends.

    One round where what a batch gives away is limited.
    """
    left = [each for each in _LEFT if each < queries and limit.accuracy >= one_person(epsilon)]
    return left, math.nextafter(epsilon / (len(left) + 1), 0.0) if left else epsilon


def _error_of_rounds(batch: AskedBatch, allowance: Allowance) -> float:
    """Predict the error of the models that are left in the end, which each round tells of: (sum of e^-2)^(-1/2).

    Nobody knows which these are: models all over the batch are taken for them. They are left since noise has made their
    gaps small, and err `_LEFT_OVER` times as much.
    """
    few, (left, epsilon), information = batch.few, in_rounds(batch.queries, allowance.epsilon, allowance.limit), 0.0
    for count in (batch.queries, *left):
        some = np.linspace(0, batch.queries - 1, count).round().astype(np.intp)
        asked = few if count == batch.queries else replace(few, predictions=few.predictions[some])
        error = predicted(asked, epsilon, allowance.limit, besides=not left)
        information += max(error, _LEAST) ** -2
    return _LEFT_OVER * information**-0.5 if information > 0 else math.inf


def nearest(batch: AskedBatch, name: str, allowance: Allowance) -> Choice:
    """Return which mechanism errs least about this very batch, by its predictions: what `best` has named, or another.

    All that contend cost the same, epsilon alone. Only a mechanism that adds noise to gaps, sums or attributes has
    contenders here; epsilon is finite.
    """
    if allowance.promise == "guaranteed":
        return _surest(batch, name, allowance)
    if name != RESPONSE and not is_purely_noisy(name.removesuffix(SHRUNK)):
        return Choice(name, math.inf, allowance.epsilon, _reveals_little(batch, name, allowance))
    allowance = replace(allowance, delta=0.0)
    # Counts are moved one by one, by less than models together: of those that share much a limit leaves nothing else.
    errors = {name: _error_of_noise(batch, name, allowance, shrinks=not allowance.binds())}
    errors |= _contenders(batch, allowance)
    if name != RESPONSE and not allowance.binds():
        errors[RESPONSE] = _HALVED * _error_of_noise(batch, RESPONSE, allowance)
    if name == RESPONSE or MECHANISM_LAWS[name.removesuffix(SHRUNK)].interval is None:
        errors[name] *= _HALVED  # the one publishes A, others have no interval and err far more at times
    if allowance.binds() and math.isfinite(errors[CELLS]) and not _is_worth_it(batch, name, allowance):
        # Cells that are few enough stay within the limit where nothing else did, or nothing worth its price.
        del errors[name]
    least = _least(batch, errors, allowance)
    is_within = least != name or _reveals_little(batch, name, allowance)
    return Choice(least, errors[least], allowance.epsilon, is_within)


def _least(batch: AskedBatch, errors: Mapping[str, float], allowance: Allowance) -> str:
    """Return the name of the least error, or cells where they are as good as that or answer more than these alone."""
    least = min(errors, key=lambda one: errors[one])
    if errors[CELLS] <= _TIE * errors[least]:
        least = CELLS  # whose counts answer later batches for nothing
    # Cells by label answer the other metrics of these models for nothing; what else is best answers this one alone.
    of_several = len({find_metric(metric).strata for metric in batch.metrics}) > 1
    if of_several and math.isfinite(errors[CELLS]):
        (of_cells,) = predicted_with(batch.few, [planned(batch.few, allowance.epsilon, allowance.limit)])
        return CELLS if of_cells <= _FREE_ERROR * errors[least] else least
    return least


@kept
def _surest(batch: AskedBatch, name: str, allowance: Allowance) -> Choice:
    """Return what promises the least half-width: what `best` has named, counts, a cube or two, or noisy attributes.

    Within the limit; `best` has named what is, or what gives away least.
    """
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
    # Nobody knows how large the group is, nor its gap: nothing is taken for being narrower mostly, and wider at times.
    least = min(names, key=lambda each: (max(float(ratios[each][1].max()), _AS_NARROW), float(ratios[each][0].mean())))
    is_within = least != name or _reveals_little(batch, name, allowance)
    return Choice(least, float(np.mean(widths[least])), allowance.epsilon, is_within)


def _is_worth_it(batch: AskedBatch, name: str, allowance: Allowance) -> bool:
    """Say whether a row of `standings` stays within the limit and errs no more than the midpoint."""
    asked = batch.metric, batch.people, batch.queries, allowance.epsilon, 0.0, allowance.limit.shares
    worth = name.endswith(SHRUNK) or any(row.name == name and row.worst_ratio <= 1 for row in standings(*asked))
    return worth and _reveals_little(batch, name, allowance)


def _reveals_little(batch: AskedBatch, name: str, allowance: Allowance) -> bool:
    """Say whether a row of `standings` stays within the limit."""
    return not allowance.binds() or allowance.reveals(batch, name.removesuffix(SHRUNK)) <= allowance.limit.accuracy


def is_purely_noisy(name: str) -> bool:
    """Say whether a mechanism adds noise to gaps or sums, and needs no delta."""
    law = MECHANISM_LAWS[name]
    return law.noise_on in ("gaps", "sums") and not law.needs_delta


@kept
def _contenders(batch: AskedBatch, allowance: Allowance) -> dict[str, float]:
    """Predict the errors of cells, infinite where they do not serve, and of a cube and two, if within the limit."""
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
    """Say whether a batch has as many different models as cells answer."""
    return len({model.tobytes() for model in batch.few.predictions}) >= CELLS_FROM


def _may_be_split(batch: AskedBatch) -> bool:
    """Say whether a batch is small enough to be held several times, as two cubes do; of more the noise is little."""
    return batch.few is batch or batch.predictions.size <= _SPLIT


@kept
def _is_within(batch: AskedBatch, name: str, allowance: Allowance) -> bool:
    """Say whether a cube, or two, reveal no more than the limit: whatever so many models may be, or these."""
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
    """Predict the error of noise on each gap, or on N0 and each sum, where answers are moved towards no gap or are not.

    Noise counts as Gaussian noise with the same median of its size would.
    """
    batch = batch.few
    m, epsilon, shares = batch.queries, allowance.epsilon, allowance.limit.shares
    errors = []
    for number, stratum in enumerate(batch.strata):
        # Of two parts the first stands for both.
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
def _squares(batch: AskedBatch, number: int) -> NDArray[np.float64]:
    """Return l of the models' values in one of the strata, `directions_of`."""
    return directions_of(batch.strata[number].gram[: batch.queries, : batch.queries])[0]


def _size(law: Law) -> float:
    """Return the deviation of Gaussian noise of the same median."""
    return law.median_abs() / _MEDIAN


_LEFT = (8, 2)
"""How many candidates are left after a round."""

_LEFT_OVER = 1.25
"""Of 8 trees, and of 20 thresholds of one score, of 1,000 and 10,000 people of Adult, it has been 1.0 to 1.8 times."""

_RUNG, _NEARER = 2.0, (2.0**0.5, 2.0**0.25)
"""How many times the next smaller epsilon one is that is tried, and how many times the best one its neighbours are."""

_LEAST_SPENT = 2.0**-5
"""No smaller epsilon is tried, where a limit binds each."""

_SPLIT = 2**23
"""Predictions of a batch that two cubes answer."""

_AS_NARROW = 0.05
"""A logarithm: a twentieth wider is as narrow."""

_STEP = 2.0**-20
"""Of a grid as fine as any that is drawn on."""

_LEAST = 1e-30
"""No number is divided by less."""

_MEDIAN = 0.6745
"""Of the size of Gaussian noise with deviation 1."""
