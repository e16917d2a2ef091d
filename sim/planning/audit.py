"""Plan an audit: whether a batch's released gaps will be near the true ones, before any budget is spent.

The question is whether P(abs(released gap - true gap) <= F) >= 95%, over the mechanism's noise alone, for each answer
of a batch by itself, whatever the true gap is. The true gap is the test set's, as `exact` would release it, not the
population's. For counts and randomised response the answer holds for decisions of 0 and 1 (of scores with the same
group means no more is possible, see `sim.planning.worst`); for noise that is added to gaps, for scores too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from compliance.mechanisms import MECHANISMS
from compliance.mechanisms.noise_on_gaps import bounded
from compliance.mechanisms.recommended import Recommended
from fairwall.laws.choice.prediction import SHRUNK, choose, standings
from fairwall.laws.mechanisms.calibration import metric_range
from fairwall.laws.mechanisms.table import MECHANISM_LAWS
from fairwall.laws.metrics.sensitivity import LabelGroupCounts
from fairwall.laws.noise.randomized_response import turning_probability
from fairwall.laws.privacy.exposure import NO_LIMIT, Limit, is_known, one_person, revealed
from fairwall.laws.privacy.most_exposed import aimed
from fairwall.laws.privacy.most_exposed import limit as most_named
from sim.planning import PlanError
from sim.planning.answer_laws import (
    ADDED,
    CountedGap,
    PlannedBatch,
    RespondedGap,
    ShrunkGap,
    added_noise,
    counted_noise,
)
from sim.planning.search import first
from sim.planning.worst import Near, SampledGap, Worst, computed_at, drawn_at, least_computed, least_drawn

LEVEL = 0.95


_EPSILON_MIN, _EPSILON_MAX = 1e-4, 1e4
_PEOPLE_MAX = 10_000_000
_REACH_MIN = 1e-7
_CLOSE, _CLOSE_DRAWN = 1.02, 1.1
_ROUNDS = 12
_FEW, _FEW_ERROR = 300, 0.0126


@dataclass(frozen=True)
class AuditPlan:
    """The precision that a batch promises, and the epsilon and people that would be enough.

    Attributes
    ----------
    batch : the batch, its mechanism with ``recommended`` resolved.
    searched : the mechanism that the following is for: the batch's, without shrinking.
    reach : the least F that it does promise; None where there is none in the metric's range.
    epsilon : about the smallest epsilon that is enough, or None where none up to 10,000 is.
    people : about how many people are enough, with the table's shares of label and group; None above ten million.
    batches : how many such batches a budget holds; None without a budget.
    batches_at_least : the same at the smallest epsilon that is enough.
    """

    batch: PlannedBatch
    within: float
    worst: Worst
    searched: str
    reach: float | None
    epsilon: float | None
    people: int | None
    batches: int | None
    batches_at_least: int | None

    @property
    def holds(self) -> bool:
        """Whether the answer is yes."""
        return self.worst.probability >= LEVEL

    @property
    def person_risk(self) -> tuple[float | None, float]:
        """Share of a group named by an attack with the whole batch on one person, None if unknown; and its upper bound.

        See `fairwall.laws.privacy.most_exposed`: by public numbers alone, whatever the table's groups are.
        """
        batch, name = self.batch, self.batch.mechanism.removesuffix(SHRUNK)
        spent = batch.epsilon, batch.delta
        return aimed(name, batch.metric, batch.exposed, *spent) if is_known(name) else None, most_named(*spent)

    @property
    def undecided(self) -> bool:
        """Whether the probability is drawn, and within two standard errors of the level."""
        return abs(self.worst.probability - LEVEL) < 2 * self.worst.error

    @property
    def everybody(self) -> int:
        """Number of people in the table's two groups."""
        return sum(self.batch.counts.groups(None))

    @property
    def binding(self) -> tuple[int | None, int, int, int] | None:
        """The group whose size limits the answer: its label, its A, its people, the stratum's people; or None."""
        interval = self.batch.law.interval
        if interval is not None and interval.is_added:
            return None  # the scale is public
        sizes = [
            (groups[a], label, a, sum(groups))
            for label, groups in zip(self.batch.kind.strata, self.batch.strata, strict=True)
            for a in (0, 1)
        ]
        size, label, a, of = min(sizes, key=lambda row: row[0])
        return label, a, size, of


def planned() -> list[str]:
    """Return the names of the mechanisms whose answers can be planned."""
    laws = MECHANISM_LAWS.items()
    return [name for name, law in laws if law.independent or law.noise_on in ("sums", "attributes", "any")]


def make(batch: PlannedBatch, within: float, budget: float | None = None) -> AuditPlan:
    """Return the plan of a batch whose mechanism is one of `planned`: F is ``within``, the total epsilon ``budget``.

    Raises PlanError for a batch that cannot be planned or would be refused, or numbers out of range.
    """
    _check(batch, within, budget)
    batch = resolved(batch)
    worst = least_favourable(batch, within)
    plain = replace(batch, mechanism=batch.mechanism.removesuffix(SHRUNK))
    first = worst if plain == batch else least_favourable(plain, within)
    counts, everybody = batch.counts, sum(batch.counts.groups(None))

    def of_people(n: float) -> tuple[PlannedBatch, float]:
        return replace(plain, counts=scaled(counts, math.ceil(n) / everybody)), within

    epsilon = _least(lambda x: (replace(plain, epsilon=x), within), batch.epsilon, _EPSILON_MIN, _EPSILON_MAX, first)
    people = _least(of_people, everybody, 3.0, float(_PEOPLE_MAX), first)
    return AuditPlan(
        batch=batch,
        within=within,
        worst=worst,
        searched=plain.mechanism,
        reach=_reach(plain, within, first),
        epsilon=epsilon,
        people=None if people is None else math.ceil(people),
        batches=None if budget is None else _fits(budget, batch.epsilon),
        batches_at_least=None if budget is None or epsilon is None else _fits(budget, epsilon),
    )


def reaches(
    batch: PlannedBatch, epsilons: Sequence[float], within: float
) -> Iterator[tuple[PlannedBatch, float | None]]:
    """Yield batches at other epsilons, with their `AuditPlan.reach`, except those that would be refused.

    Each batch has ``recommended`` resolved. Raises PlanError as `make` does, for the batch as it is.
    """
    _check(batch, within, None)
    for epsilon in epsilons:
        asked = replace(batch, epsilon=epsilon)
        if _answerable(asked):
            answered = resolved(asked)
            plain = replace(answered, mechanism=answered.mechanism.removesuffix(SHRUNK))
            yield answered, _reach(plain, within, least_favourable(plain, within))


def resolved(batch: PlannedBatch) -> PlannedBatch:
    """Return the batch with the mechanism that ``recommended`` chooses, and its clamping."""
    if batch.law.noise_on != "any":
        return batch
    asked = batch.metric, batch.people, batch.queries, batch.epsilon, batch.delta
    chosen = choose(*asked, limit=Limit(batch.reveal_max), exposed=batch.exposed)
    return replace(batch, mechanism=chosen, bounding="clamp")


def least_favourable(batch: PlannedBatch, within: float) -> Worst:
    """Return the model whose answer is least probably within reach of its true gap."""
    batch = resolved(batch)
    if batch.law.independent:
        probability, gap = added_noise(batch).worst(within)
        return Worst(probability, 0.0, gap, None)
    near = Near(batch.kind, batch.strata, within)
    if _is_drawn(batch):
        return least_drawn(near, _drawn_laws(batch))
    return least_computed(near, _laws(batch))


def _is_drawn(batch: PlannedBatch) -> bool:
    return batch.mechanism.endswith(SHRUNK) or batch.kind.joined == "sum"


def _laws(batch: PlannedBatch) -> list[CountedGap | RespondedGap]:
    if batch.law.noise_on == "attributes":
        return [RespondedGap(*groups, turning_probability(batch.epsilon)) for groups in batch.strata]
    noise = counted_noise(batch)
    return [CountedGap.of(*groups, noise) for groups in batch.strata]


def _drawn_laws(batch: PlannedBatch) -> list[list[SampledGap]]:
    laws = _laws(batch)
    if not batch.mechanism.endswith(SHRUNK):
        return [list(laws)]
    alike = (True, False) if batch.queries > 1 else (True,)
    return [[ShrunkGap(law, batch.queries, same) for law in laws if isinstance(law, CountedGap)] for same in alike]


def _for_model(batch: PlannedBatch, within: float, model: Worst) -> float:
    if model.ones is None:
        return least_favourable(batch, within).probability
    ones = tuple((round(r0 * n0), round(r1 * n1)) for (r0, r1), (n0, n1) in zip(model.rates, batch.strata, strict=True))
    near = Near(batch.kind, batch.strata, within)
    if _is_drawn(batch):
        laws = _drawn_laws(batch)
        few = drawn_at(near, laws, ones, model.case, _FEW)
        if abs(few.probability - LEVEL) > 4 * max(few.error, _FEW_ERROR):
            return few.probability
        return drawn_at(near, laws, ones, model.case).probability
    return computed_at(near, _laws(batch), ones).probability


def scaled(counts: LabelGroupCounts, factor: float) -> LabelGroupCounts:
    """Return the counts of a table ``factor`` times as large, with the same shares of label and group."""
    return LabelGroupCounts(*(round(factor * n) for n in (counts.n00, counts.n01, counts.n10, counts.n11)))


def _check(batch: PlannedBatch, within: float, budget: float | None) -> None:
    metric, name = batch.kind, batch.mechanism
    if name in MECHANISM_LAWS and batch.law.is_choice:
        raise PlanError(f"--mechanism: {name} answers with choices, which are not near any gap")
    if name not in planned():
        raise PlanError(f"--mechanism: {name} is not planned, choose one of: {', '.join(planned())}")
    for option, fits, rule in (
        ("--epsilon", 0 < batch.epsilon < math.inf, "must be above 0 and finite"),
        ("--delta", 0 <= batch.delta < 1, "must be at least 0 and below 1"),
        ("--models", batch.queries >= 1, "must be at least 1"),
        ("--reveal-max", 0.5 <= batch.reveal_max <= 1, "must be at least 0.5 and at most 1"),
        ("--budget", budget is None or 0 < budget < math.inf, "must be above 0 and finite"),
    ):
        if not fits:
            raise PlanError(f"{option}: {rule}")
    if not metric.bounded or (metric.binary and not batch.law.independent):
        raise PlanError(
            f"--metric: an answer about {batch.metric} is as far off as few people are counted in it, so that "
            "nothing holds for every model"
            + ("" if not metric.bounded else f"; with --mechanism {', '.join(ADDED)} something may")
        )
    low, high = metric_range(batch.metric)
    if not 0 < within < high - low:
        raise PlanError(
            f"--within: must be above 0 and below {high - low:g}, the width of metric {batch.metric}'s range"
        )
    try:
        mechanism = bounded(MECHANISMS[name], batch.bounding)
    except ValueError as error:
        raise PlanError(f"--bounding: {error}") from None
    if not batch.auditable:
        raise PlanError(f"--data: a group of metric {batch.metric} is empty, or fewer than 3 people are in it together")
    if why := mechanism.refuses(batch.metric, batch.epsilon, batch.delta):
        raise PlanError(f"--mechanism: {name} does not answer this batch: {why}")
    if budget is not None and budget < batch.epsilon:
        raise PlanError(f"--budget: {budget:,g} does not hold one batch of epsilon {batch.epsilon:,g}")


def _answerable(batch: PlannedBatch) -> bool:
    mechanism = MECHANISMS[batch.mechanism]
    return batch.auditable and not mechanism.refuses(batch.metric, batch.epsilon, batch.delta)


Case = Callable[[float], tuple[PlannedBatch, float]]
"""The batch and F to check at a number that is searched for."""


def _least(case: Case, start: float, least: float, most: float, worst: Worst) -> float | None:
    """Return the least number, rounded up to about three digits, at which a case holds for every model.

    The search is over the models known to be unfavourable, and repeated while another model is worse at the result. A
    case is taken to hold above any number at which it holds.
    """
    models = [worst]

    def holds(x: float) -> bool:
        batch, within = case(x)
        return _answerable(batch) and all(_for_model(batch, within, model) >= LEVEL for model in models)

    known = start
    for _ in range(_ROUNDS):
        found = first(holds, known, least, most)
        if found is None:
            return None
        batch, within = case(found)
        other = least_favourable(batch, within)
        # A drawn share is known within two standard errors only.
        if other.probability >= LEVEL - 2 * other.error:
            return found
        models.append(other)
        known = min((_CLOSE_DRAWN if other.error else _CLOSE) * found, most)
    return None


def _reach(plain: PlannedBatch, within: float, first: Worst) -> float | None:
    low, high = metric_range(plain.metric)
    return _least(lambda x: (plain, x), within, _REACH_MIN, (high - low) * (1 - 1e-9), first)


def _fits(budget: float, epsilon: float) -> int:
    # As the ledger counts, with the decimals as written.
    return int(Decimal(repr(float(budget))) // Decimal(repr(float(epsilon))))


EPSILONS = (
    *(0.05, 0.06, 0.08, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8),
    *(1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0),
)
EPSILON, WITHIN = 0.5, 0.05
"""Epsilon of the batch shown first, and the half-width where the search for `Plan.reach` starts, by default."""

_STEPS = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
_APART = 1.34
"""Largest ratio of two successive steps."""


@dataclass(frozen=True)
class Bought:
    """The precision and disclosure of a batch at one epsilon.

    ``reach`` is the half-width that 95% of answers keep whatever the true gap (`sim.planning.audit.AuditPlan.reach`);
    ``median_error`` is None for a mechanism not ranked in `fairwall.laws.choice.prediction`; ``revealed`` is the
    balanced accuracy of the best known attack, or None, and ``unlimited`` the same without the policy's ``reveal_max``;
    ``one_person`` bounds how often an attack on one person is right (`fairwall.laws.privacy.exposure.one_person`).
    """

    epsilon: float
    mechanism: str
    reach: float | None
    median_error: float | None
    revealed: float | None
    unlimited: float | None
    one_person: float


@dataclass(frozen=True)
class EpsilonChoices:
    """The epsilons to choose from, and the half-widths to choose them by, both ascending.

    ``widths`` reach from below the least half-width of the grid to above its largest; ``start`` is the one shown first.

    The half-width that answers keep for every true gap depends on the groups' sizes (`AuditPlan`). The median error and
    what is revealed are computed from public numbers alone, as compliance tells them to developers.
    """

    batch: PlannedBatch
    bought: Sequence[Bought]
    widths: Sequence[float]
    start: float

    def least(self, width: float) -> int | None:
        """Return the index of the smallest epsilon with at most this half-width, or None if the grid has none."""
        return next((i for i, one in enumerate(self.bought) if one.reach is not None and one.reach <= width), None)


def choices(
    batch: PlannedBatch, within: float | None = None, progress: Callable[[float], None] = lambda _: None
) -> EpsilonChoices:
    """Return the choices of the grid and of the batch's own epsilon; PlanError as for `sim.planning.audit.make`.

    ``within`` is the half-width shown first, None for the one that the batch reaches or comes closest to; ``progress``
    is called with each epsilon computed.
    """
    bought = []
    for answered, reach in reaches(batch, sorted({*EPSILONS, batch.epsilon}), within or WITHIN):
        progress(answered.epsilon)
        bought.append(_bought(batch, answered, reach))
    low, high = metric_range(batch.metric)
    reached = [one.reach for one in bought if one.reach is not None]
    own = next((one.reach for one in bought if one.epsilon >= batch.epsilon and one.reach is not None), None)
    start = within or own or min(reached, default=WITHIN)
    return EpsilonChoices(batch, bought, _widths([*reached, start], high - low), start)


def _bought(batch: PlannedBatch, answered: PlannedBatch, reach: float | None) -> Bought:
    epsilon, delta = answered.epsilon, batch.delta
    rows = standings(batch.metric, batch.people, batch.queries, epsilon, delta)
    return Bought(
        epsilon=epsilon,
        mechanism=answered.mechanism,
        reach=reach,
        median_error=next((row.median_error for row in rows if row.name == answered.mechanism), None),
        revealed=_revealed(batch, epsilon, batch.reveal_max),
        unlimited=_revealed(batch, epsilon, NO_LIMIT.accuracy),
        one_person=one_person(epsilon, delta),
    )


def _revealed(batch: PlannedBatch, epsilon: float, limit: float) -> float | None:
    spent = batch.queries, epsilon, batch.delta
    if batch.law.noise_on == "any":
        return Recommended(reveal_max=limit).reveals(batch.metric, batch.people, *spent, exposed=batch.exposed)
    return revealed(batch.mechanism, batch.metric, batch.exposed, *spent) if is_known(batch.mechanism) else None


def _widths(widths: Sequence[float], most: float) -> list[float]:
    """Return round half-widths from just below the least to just above the largest, and the last one."""
    exponents = range(math.floor(math.log10(min(widths))) - 1, math.ceil(math.log10(max(widths))) + 1)
    steps = [float(f"{step}e{exponent}") for exponent in exponents for step in _STEPS]
    low, high = min(widths) / _APART, min(max(widths) * _APART, most)
    return sorted({*(step for step in steps if low < step < high), widths[-1]})
