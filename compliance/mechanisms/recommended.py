"""The mechanism with the smallest median error, chosen from public numbers alone (`fairwall.laws.standings`).

**Twice.** First by numbers that are known before the batch is; then, where that names a mechanism that adds noise to
gaps, sums or attributes, once more by the batch's predictions, which are public to who asks: `cells` serve models that
agree, from `CELLS_FROM` on (`nearest`). What errs least by a prior's prediction may err more where the prior is wrong,
and how much more has no bound: of few models `cells` have shrunk large gaps, and `low-rank`, which has done so of many,
is not chosen at all.

**Randomized response** has the smallest error wherever epsilon is large, from 3 or so on for few people or many models,
because it then turns few people over: it publishes A. It costs what any other costs. Whichever batch chooses it buys
noisy attributes, and all later batches of the account that name no larger epsilon are answered from them for nothing,
whatever would have been chosen for them. No free answer depends on the records.

**The price** is that of what is chosen, which is public: of Gaussian noise the ledger knows the multiplier, and a pure
mechanism is charged no delta.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from compliance.ledger.accountant import Loss, pure
from compliance.mechanisms.cauchy import CauchyMechanism
from compliance.mechanisms.cells import CellsMechanism, bought_at, planned, predicted_with
from compliance.mechanisms.cells import predicted as predicted_of_cells
from compliance.mechanisms.counts import CountsMechanism
from compliance.mechanisms.counts_gaussian import CountsGaussian
from compliance.mechanisms.cube import CubeMechanism
from compliance.mechanisms.gaussian import GaussianMechanism
from compliance.mechanisms.laplace import LaplaceMechanism
from compliance.mechanisms.mechanism import (
    Facts,
    Guarantee,
    Mechanism,
    Question,
    Release,
    exactly,
    kept,
    require_answerable,
    require_budget,
)
from compliance.mechanisms.randomized_response import RandomizedResponse
from compliance.noise.sampling import Noise
from fairwall.laws.bounding import metric_range
from fairwall.laws.counts import laplace_scales
from fairwall.laws.cube import CubeNoise, coordinates, cube_scales
from fairwall.laws.exposure import NO_LIMIT, Limit, one_person, revealed
from fairwall.laws.mechanisms import MECHANISM_LAWS, Batch
from fairwall.laws.metric import find_metric
from fairwall.laws.noise import Laplace
from fairwall.laws.posterior import SHARE, STRUCTURES, directions_of, predicted_error, variances_with_noise
from fairwall.laws.response import turning_probability
from fairwall.laws.shares import DEFAULT_SHARES, Shares
from fairwall.laws.standings import SHRUNK, choose, standings, sums_a_stratum

_RESPONSE = RandomizedResponse()
_CELLS = CellsMechanism()
_CELLS_ANEW = CellsMechanism(anew=True)
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
_CUBE = "cube" + SHRUNK


@dataclass(frozen=True)
class Recommended:
    """Answers with the mechanism that `standings` puts first, its answers clamped to the metric's range.

    Where the midpoint comes first it is the best mechanism all the same: an account has been charged for more. An
    account that has bought noisy attributes is answered from them, and from cells where they tell enough of its models.
    """

    shares: Shares = DEFAULT_SHARES
    name: str = "recommended"
    title: str = "recommended"
    guarantee: Guarantee = "approximate"
    reveal_max: float = NO_LIMIT.accuracy

    def refuses(self, metric: str, epsilon: float, delta: float) -> str | None:  # noqa: ARG002
        """Refuse nothing: counts serve every metric."""
        return None

    def cost(self, epsilon: float, delta: float) -> Loss:
        """Return (epsilon, delta), which covers whatever is chosen; a batch is charged what `chosen` costs."""
        require_budget(epsilon, delta)
        return pure(epsilon, delta)

    def chosen(
        self,
        metric: str,
        people: int,
        queries: int,
        epsilon: float,
        delta: float,
        question: Question | None = None,
    ) -> Mechanism:
        """Return the mechanism that answers a batch. See `Choosing.chosen`."""
        if math.isinf(epsilon):
            return self
        limit = Limit(self.reveal_max, self.shares)
        exposed = people if question is None else question.records.exposed(question.metric)
        name = choose(metric, people, queries, epsilon, delta, self.shares, limit, exposed)
        if question is not None:
            name = nearest(question, name, epsilon, self.shares, limit)
        return mechanism_of(name, self.shares, limit)

    def reveals(
        self, metric: str, people: int, queries: int, epsilon: float, delta: float, exposed: int | None = None
    ) -> float:
        """Return the balanced accuracy of the best attack with a batch, whatever is chosen for it.

        `exposed` is as of `choose`.
        """
        exposed = people if exposed is None else exposed
        limit = Limit(self.reveal_max, self.shares)
        name = choose(metric, people, queries, epsilon, delta, self.shares, limit, exposed).removesuffix(SHRUNK)
        names = [name, *([CubeMechanism.name] if _is_purely_noisy(name) else [])]
        names += [_CELLS.name] if _is_purely_noisy(name) and queries >= CELLS_FROM else []
        first, *others = (revealed(one, metric, exposed, queries, epsilon, delta, self.shares) for one in names)
        return max(first, min(max(others, default=0.5), self.reveal_max))

    def candidates(self, delta: float) -> tuple[Mechanism, ...]:
        """Return all that may be chosen at this delta."""
        laws = MECHANISM_LAWS.items()
        names = [name for name, law in laws if law.recommendable and (delta or not law.needs_delta)]
        return tuple(mechanism_of(name, self.shares) for name in names)

    def is_free(self, facts: Facts, epsilon: float, question: Question | None = None) -> bool:
        """Return whether the account has bought noisy attributes at this epsilon or a larger one, or cells.

        Those answer a question about models that they tell nearly as much of as a purchase at epsilon would.
        """
        if _RESPONSE.is_free(facts, epsilon):
            return True
        if question is None or not _CELLS.is_free(facts, epsilon) or not _may_be_cells(question):
            return False
        # The best of the purchases by itself: what is free stays free, whatever else is bought.
        limit = Limit(self.reveal_max, self.shares)
        *told, anew = predicted_with(question, [*bought_at(facts, epsilon), planned(question, epsilon, limit)])
        others = _errors_of(question, CountsMechanism.name, epsilon, self.shares, limit)
        del others[_CELLS.name]
        return min(told) <= _FREE_ERROR * min(anew, *others.values())

    def release(self, question: Question, facts: Facts, epsilon: float, delta: float, noise: Noise) -> Release:
        """Return answers in the metric's range. See `Mechanism.release`."""
        require_answerable(self, question.metric, epsilon, delta)
        # First of all, also before an infinite epsilon: nothing is charged for this batch.
        if self.is_free(facts, epsilon, question):
            bought = _RESPONSE if _RESPONSE.is_free(facts, epsilon) else _CELLS
            return bought.release(question, facts, epsilon, delta, noise)
        if math.isinf(epsilon):
            return exactly(question.gaps())
        chosen = self.chosen(question.metric, question.people(), question.queries, epsilon, delta, question)
        released = chosen.release(question, facts, epsilon, delta, noise)
        low, high = metric_range(question.metric)
        return replace(released, values=np.clip(released.values, low, high))


def mechanism_of(name: str, shares: Shares = DEFAULT_SHARES, limit: Limit = NO_LIMIT) -> Mechanism:
    """Return the mechanism of a row of `standings`."""
    counts = {kind.name: kind for kind in (CountsMechanism(), CountsGaussian())}
    shrinking = (CountsMechanism(shrinks=True), CountsGaussian(shrinks=True), CubeMechanism(shrinks=True))
    shrunk = {kind.name + SHRUNK: kind for kind in shrinking}
    added = (LaplaceMechanism(), GaussianMechanism(), CauchyMechanism(shares), CubeMechanism())
    others = {kind.name: kind for kind in (*added, _RESPONSE, replace(_CELLS_ANEW, limit=limit))}
    every: dict[str, Mechanism] = {**counts, **shrunk, **others}
    return every[name]


def nearest(
    question: Question, name: str, epsilon: float, shares: Shares = DEFAULT_SHARES, limit: Limit = NO_LIMIT
) -> str:
    """Return which mechanism errs least about this very batch, by its predictions: the one named, or another.

    All that contend cost the same, epsilon alone. Nobody looks at A: errors are predicted by
    `fairwall.laws.posterior.predicted_error`.

    Parameters
    ----------
    question
        The batch.
    name
        What `choose` names for it. Only a mechanism that adds noise to gaps, sums or attributes has contenders here.
    epsilon
        Above 0 and finite.
    shares
        The public range of group shares.
    limit
        What the batch may reveal.
    """
    if name != _RESPONSE.name and not _is_purely_noisy(name.removesuffix(SHRUNK)):
        return name
    errors = _errors_of(question, name, epsilon, shares, limit)
    if name == _RESPONSE.name or MECHANISM_LAWS[name.removesuffix(SHRUNK)].interval is None:
        errors[name] *= _HALVED  # the one publishes A, others have no interval and err far more at times
    if limit.accuracy < one_person(epsilon) and math.isfinite(errors[_CELLS.name]):
        asked = question.queries, epsilon, 0.0, shares
        rows = standings(question.metric, question.people(), *asked)
        worth = name.endswith(SHRUNK) or any(row.name == name and row.worst_ratio <= 1 for row in rows)
        told = revealed(name.removesuffix(SHRUNK), question.metric, question.records.exposed(question.metric), *asked)
        if not worth or told > limit.accuracy:
            # Cells that are few enough stay within the limit where nothing else did, or nothing worth its price.
            del errors[name]
    best = min(errors, key=lambda one: errors[one])
    if errors[_CELLS.name] <= _TIE * errors[best]:
        best = _CELLS.name  # whose counts answer later batches for nothing
    # Cells by label answer the other metrics of these models for nothing; what else is best answers this one alone.
    of_several = len({find_metric(metric).strata for metric in question.records.metrics}) > 1
    if of_several and math.isfinite(errors[_CELLS.name]):
        (of_cells,) = predicted_with(question, [planned(question, epsilon, limit)])
        return _CELLS.name if of_cells <= _FREE_ERROR * errors[best] else best
    return best


def _is_purely_noisy(name: str) -> bool:
    """Say whether a mechanism adds noise to gaps or sums, and needs no delta."""
    law = MECHANISM_LAWS[name]
    return law.noise_on in ("gaps", "sums") and not law.needs_delta


def _errors_of(
    question: Question, name: str, epsilon: float, shares: Shares, limit: Limit = NO_LIMIT
) -> dict[str, float]:
    of_others = _errors_of_contenders(question, epsilon, shares, limit)
    return {name: _error_of_noise(question, name, epsilon, shares), **of_others}


@kept
def _errors_of_contenders(question: Question, epsilon: float, shares: Shares, limit: Limit) -> dict[str, float]:
    errors = {_CELLS.name: predicted_of_cells(question, epsilon, limit) if _may_be_cells(question) else math.inf}
    if _cube_within(question, epsilon, limit):
        error, unshrunk = (_error_of_noise(question, _CUBE, epsilon, shares, shrinks=each) for each in (True, False))
        shrinks = _may_be_cells(question) or unshrunk > _HALVED * error
        errors[_CUBE if shrinks else CubeMechanism.name] = error
    return errors


@kept
def _may_be_cells(question: Question) -> bool:
    """Say whether a batch has as many different models as cells answer."""
    return len({model.tobytes() for model in question.predictions}) >= CELLS_FROM


def _cube_within(question: Question, epsilon: float, limit: Limit) -> bool:
    """Say whether a cube reveals no more than the limit: whatever so many models may be, or these."""
    if limit.accuracy >= one_person(epsilon):
        return True
    metric, people, m, shares = (
        question.metric,
        question.records.exposed(question.metric),
        question.queries,
        limit.shares,
    )
    if revealed(CubeMechanism.name, metric, people, m, epsilon, 0.0, shares) <= limit.accuracy:
        return True
    different = {len(coordinates(stratum.inside, 2.0**-20).steps) for stratum in question.strata}
    return all(
        revealed(CubeMechanism.name, metric, people, m, epsilon, 0.0, shares, different=each) <= limit.accuracy
        for each in different
    )


def _error_of_noise(question: Question, name: str, epsilon: float, shares: Shares, *, shrinks: bool = True) -> float:
    """Predict the error of noise on each gap, or on N0 and each sum, where answers are moved towards no gap or are not.

    Noise counts as Gaussian noise with the same median of its size would.
    """
    metric, m, errors = question.metric, question.queries, []
    for stratum in question.strata:
        # Of two parts the first stands for both.
        n, means, centred, of_size = stratum.people, stratum.means[:m], stratum.centred[:m], 0.0
        public = MECHANISM_LAWS[name.removesuffix(SHRUNK)]
        if public.noise_on == "gaps":
            n0 = min(max(shares.minimum_group, round(SHARE * n)), n - shares.minimum_group)
            proxy = metric if find_metric(metric).of_means else "abs_sp"
            law = public.error(Batch(proxy, n0, n - n0, m, epsilon, shares=shares))
            assert law is not None
            noise = (law.median_abs() / _MEDIAN * SHARE * (1 - SHARE) * n) ** 2
        elif name == _RESPONSE.name:
            p = turning_probability(epsilon)
            of_person = p * (1 - p) / max((1 - 2 * p) ** 2, _LEAST)
            noise, of_size = of_person * float((centred**2).sum(axis=1).mean()), of_person * n
        elif name == _CUBE:
            told = coordinates(stratum.inside[:m], 2.0**-20)
            scales = cube_scales(len(told.steps), epsilon)
            of_one = (CubeNoise(scales.scale, max(scales.sides, 1)).median_abs() / _MEDIAN) ** 2
            of_size = of_one if scales.size is None else (Laplace(scales.size).median_abs() / _MEDIAN) ** 2
            noise = float((told.halves**2 * of_one + (means - told.centres) ** 2 * of_size).mean())
        else:
            of_counts = laplace_scales(m * sums_a_stratum(metric), epsilon)
            of_size, of_sums = (
                (Laplace(scale).median_abs() / _MEDIAN) ** 2 for scale in (of_counts.size, of_counts.sums)
            )
            noise = of_sums + float(((means - 0.5) ** 2).mean()) * of_size
        squares, _ = directions_of(centred @ centred.T)
        variances = variances_with_noise(squares, m, noise, n) if shrinks else [noise] * len(STRUCTURES)
        errors.append(predicted_error(variances, of_size, n))
    return sum(errors) / len(errors)


_LEAST = 1e-30
"""No number is divided by less."""

_MEDIAN = 0.6745
"""Of the size of Gaussian noise with deviation 1."""
