"""The mechanism with the smallest median error, chosen from public numbers alone (`fairwall.laws.choice.prediction`).

**Twice.** First by numbers that are known before the batch; then, where that names a mechanism that adds noise to gaps,
sums or attributes, once more by the batch's predictions, which are public to the developer
(`fairwall.laws.choice.choose`).

**Randomized response** has the smallest error wherever epsilon is large, from 3 or so on for few people or many models,
because it then flips few people's attributes: it publishes A. It costs what any other mechanism costs. A batch that
chooses it buys noisy attributes, and all later batches of the account at no larger epsilon are answered from them free,
whatever would have been chosen for them. No free answer depends on the records.

**The price** is that of the chosen mechanism, which is public: the ledger knows the multiplier of Gaussian noise, and a
pure mechanism is charged no delta. Where `reveal_max` leaves less to choose from at a larger epsilon, a batch spends
the smaller epsilon that answers it best, and is charged that (`fairwall.laws.choice.choose.best_for`).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from compliance.ledger.accountant import Loss
from compliance.mechanisms.cells import CellsMechanism
from compliance.mechanisms.counts import CountsGaussian, CountsMechanism
from compliance.mechanisms.cube import CubeMechanism, LowRankMechanism
from compliance.mechanisms.mechanism import BatchQuestion, Facts, Guarantee, Mechanism, MechanismAnswer, exactly
from compliance.mechanisms.noise_on_gaps import CauchyMechanism, GaussianMechanism, LaplaceMechanism
from compliance.mechanisms.randomized_response import RandomizedResponse
from compliance.mechanisms.row_defaults import ByRecord, require_answerable
from compliance.noise.sampling import Noise
from fairwall.laws.choice.cell_purchases import bought_at
from fairwall.laws.choice.choose import (
    CELLS,
    CELLS_FROM,
    Allowance,
    best,
    best_for,
    best_for_search,
    is_purely_noisy,
    is_told,
)
from fairwall.laws.choice.prediction import SHRUNK, Promise
from fairwall.laws.mechanisms.calibration import metric_range
from fairwall.laws.mechanisms.table import MECHANISM_LAWS
from fairwall.laws.metrics.group_size_range import DEFAULT_SHARES, Shares
from fairwall.laws.privacy.exposure import NO_LIMIT, Limit, revealed

_RESPONSE = RandomizedResponse()
_CELLS = CellsMechanism()
_CELLS_ANEW = CellsMechanism(anew=True)


@dataclass(frozen=True)
class Recommended(ByRecord):
    """A mechanism that answers with the first of `standings`, its answers clamped to the metric's range.

    Where the midpoint comes first it is the best mechanism all the same, since the account is charged. An account that
    has bought noisy attributes is answered from them, and from cells where they tell enough of its models. With
    `promise` "guaranteed" the mechanism with the narrowest guaranteed interval answers instead, and cells never do.
    """

    shares: Shares = DEFAULT_SHARES
    name: str = "recommended"
    title: str = "recommended"
    guarantee: Guarantee = "approximate"
    reveal_max: float = NO_LIMIT.accuracy
    promise: Promise = "likely"

    def chosen(
        self,
        metric: str,
        people: int,
        queries: int,
        epsilon: float,
        delta: float,
        question: BatchQuestion | None = None,
    ) -> Mechanism:
        """Return the mechanism that answers a batch. See `Choosing.chosen`."""
        if math.isinf(epsilon):
            return self
        allowance = self._allowance(epsilon, delta)
        if question is None:
            return self._answerers[best(metric, people, queries, allowance)]
        found = (best_for if question.candidates is None else best_for_search)(question.asked, allowance)
        return _spending(self._answerers[found.name], found.epsilon, epsilon)

    def reveals(
        self, metric: str, people: int, queries: int, epsilon: float, delta: float, exposed: int | None = None
    ) -> float:
        """Return the balanced accuracy of the best attack with a batch, for any choice; `exposed` as in `choose`."""
        exposed = people if exposed is None else exposed
        names = self.answering(metric, people, queries, epsilon, delta, exposed)
        first, *others = (revealed(one, metric, exposed, queries, epsilon, delta, self.shares) for one in names)
        return max(first, min(max(others, default=0.5), self.reveal_max))

    def answering(
        self, metric: str, people: int, queries: int, epsilon: float, delta: float, exposed: int
    ) -> list[str]:
        """Return the names of mechanisms that may answer a batch, first the one chosen without its predictions."""
        name = best(metric, people, queries, self._allowance(epsilon, delta), exposed).removesuffix(SHRUNK)
        # Two cubes may be as one, or tell more.
        names = [name, *([LowRankMechanism.name] if is_purely_noisy(name) else [])]
        return names + ([CELLS] if is_purely_noisy(name) and queries >= CELLS_FROM else [])

    def candidates(self, delta: float) -> tuple[Mechanism, ...]:
        """Return all mechanisms that may be chosen at this delta."""
        laws = MECHANISM_LAWS.items()
        names = [name for name, law in laws if law.recommendable and (delta or not law.needs_delta)]
        found = answerers(Limit(shares=self.shares))
        return tuple(found[name] for name in names)

    def is_free(self, facts: Facts, epsilon: float, question: BatchQuestion | None = None) -> bool:
        """Return whether the account has bought noisy attributes at this epsilon or a larger one, or cells.

        Cells answer free if they tell nearly as much of the question's models as a purchase at epsilon would.
        """
        return self._free(facts, epsilon, question) is not None

    def release(
        self, question: BatchQuestion, facts: Facts, epsilon: float, delta: float, noise: Noise
    ) -> MechanismAnswer:
        """Return answers in the metric's range. See `Mechanism.release`."""
        require_answerable(self, question.metric, epsilon, delta)
        # First of all, also before an infinite epsilon: nothing is charged for what was bought before.
        answering = self._free(facts, epsilon, question)
        if answering is None:
            if math.isinf(epsilon):
                return exactly(question.gaps())
            about = question.metric, question.asked.people, question.queries
            answering = self.chosen(*about, epsilon, delta, question)
        released = answering.release(question, facts, epsilon, delta, noise)
        return replace(released, values=np.clip(released.values, *metric_range(question.metric)))

    def _free(self, facts: Facts, epsilon: float, question: BatchQuestion | None) -> Mechanism | None:
        """Return the mechanism that answers from earlier purchases, None if none does.

        It does not depend on delta: `is_free`, by which a batch is charged, does not know it.
        """
        if not facts:
            return None
        allowance = self._allowance(epsilon)
        if question is not None and math.isfinite(epsilon):
            allowance = replace(allowance, epsilon=best_for(question.asked, allowance).epsilon)
        if _RESPONSE.is_free(facts, allowance.epsilon):
            return _spending(_RESPONSE, allowance.epsilon, epsilon)
        if question is not None and is_told(question.asked, bought_at(facts, allowance.epsilon), allowance):
            return _spending(_CELLS, allowance.epsilon, epsilon)
        return None

    def _allowance(self, epsilon: float, delta: float = 0.0) -> Allowance:
        return Allowance(epsilon, delta, Limit(self.reveal_max, self.shares), self.promise)

    @cached_property
    def _answerers(self) -> Mapping[str, Mechanism]:
        return answerers(Limit(self.reveal_max, self.shares))


@dataclass(frozen=True)
class _Spending(ByRecord):
    """A mechanism that spends, and costs, a smaller epsilon than the batch's."""

    mechanism: Mechanism
    epsilon: float
    name: str
    title: str
    guarantee: Guarantee

    def cost(self, _epsilon: float, delta: float) -> Loss:
        """Return the charge. See `Mechanism.cost`."""
        return self.mechanism.cost(self.epsilon, delta)

    def release(
        self, question: BatchQuestion, facts: Facts, _epsilon: float, delta: float, noise: Noise
    ) -> MechanismAnswer:
        """Return answers at the smaller epsilon. See `Mechanism.release`."""
        return self.mechanism.release(question, facts, self.epsilon, delta, noise)


def _spending(mechanism: Mechanism, spent: float, epsilon: float) -> Mechanism:
    """Return a mechanism that spends `spent` of the batch's epsilon."""
    if spent == epsilon:
        return mechanism
    return _Spending(mechanism, spent, mechanism.name, mechanism.title, mechanism.guarantee)


def answerers(limit: Limit = NO_LIMIT) -> dict[str, Mechanism]:
    """Return the mechanisms that answer within a limit, by the rows of `standings`."""
    counts = (CountsMechanism(), CountsGaussian())
    shrinking = (CountsMechanism(shrinks=True), CountsGaussian(shrinks=True), CubeMechanism(shrinks=True))
    added = (LaplaceMechanism(), GaussianMechanism(), CauchyMechanism(limit.shares))
    cubes = (CubeMechanism(), LowRankMechanism())
    cells = replace(_CELLS_ANEW, limit=limit)
    return {
        **{kind.name: kind for kind in (*counts, *added, *cubes, _RESPONSE, cells)},
        **{kind.name + SHRUNK: kind for kind in shrinking},
    }
