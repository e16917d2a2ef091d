"""The interface of a mechanism, with its refusals, price and answers, and the wrapper of plug-in mechanisms.

The promises of a plug-in are not proved here, and each of its answers is checked before it leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from compliance.intervals.interval import Ends, within_range
from compliance.ledger.accountant import Loss
from compliance.noise.sampling import Noise
from compliance.records.metrics import MetricSums, gaps
from compliance.records.people import Records
from fairwall.arrays import Floats
from fairwall.laws.choice.public_batch import AskedBatch, Stratum
from fairwall.laws.mechanisms.calibration import metric_range
from fairwall.laws.metrics.metric import find_metric
from fairwall.laws.metrics.sensitivity import LabelGroupCounts, Sensitivities, sensitivities
from fairwall.laws.noise.distributions import NoiseDistribution
from fairwall.laws.noise.quantiles import noise_reach
from fairwall.laws.studies.alternatives import Candidates
from fairwall.plugins import Plugin

Facts: TypeAlias = Mapping[str, NDArray[Any]]
"""Numbers that an account has bought and may use again free, by name. Names, types and shapes are public."""

Guarantee: TypeAlias = Literal["pure", "approximate", "none"]

_POINT = 1e-9
"""Width below which an interval is a point; no noise makes an interval as narrow."""

Joint: TypeAlias = Callable[[int, np.random.Generator], Floats]
"""Draws sets of a batch's gaps from their joint posterior, shape (draws, m), without reading anything secret."""

NO_FACTS: Facts = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class BatchQuestion:
    """One batch of requests.

    Parameters
    ----------
    metric : a key of `compliance.records.metrics.METRICS` that the records are audited for.
    predictions : shape (m, n), m at least 1: each model's prediction for everybody, in [0, 1], see
        `fairwall.laws.metrics.values.Values`. Public to the developer.
    records : secret.
    stands_for : number of people that each simulated person stands for.
    candidates : of a search for the least gap, if the models are candidates. Public.
    """

    metric: str
    predictions: NDArray[Any]
    records: Records = field(repr=False)
    stands_for: float = 1.0
    candidates: Candidates | None = None

    def __post_init__(self) -> None:
        if self.predictions.ndim != 2 or not len(self.predictions):
            raise ValueError("queries must be at least one model's predictions, shape (m, n)")

    @property
    def queries(self) -> int:
        """Number of models in the batch: m."""
        return len(self.predictions)

    @cached_property
    def asked(self) -> AskedBatch:
        """The part of the batch that is public to the developer."""
        return AskedBatch(self.metric, self.predictions, self.records.labels, self.records.metrics, self.stands_for)

    def gaps(self) -> Floats:
        """Return the metric of each model. Secret."""
        return self._gaps.copy()

    @cached_property
    def _gaps(self) -> Floats:
        # A game's case asks for them besides the mechanism.
        return gaps(self.metric, self.sums())

    def sums(self) -> tuple[MetricSums, ...]:
        """Return sums over each group, for each of the metric's parts. Secret."""
        return self.records.group_sums(self.metric, self.predictions)

    def sums_of_steps(self, stratum: Stratum, pieces: Iterable[Floats]) -> Floats:
        """Return sums over the disadvantaged of members' values, given in pieces, (r, people) each. Secret."""
        sums = [self.records.sums_of_disadvantaged(stratum.members, rows) for rows in pieces]
        return np.concatenate([np.empty(0), *sums])

    def counts(self) -> LabelGroupCounts:
        """Return the numbers of people by label and group. Secret; by label alone they are public."""
        (n00, n01), (n10, n11) = self._counted("fpr"), self._counted("eo")
        return LabelGroupCounts(n00=n00, n01=n01, n10=n10, n11=n11)

    def people(self) -> int:
        """Return the number of people that the metric reads. Public, since the labels are."""
        return sum(self._counted(self.metric))

    def sensitivities(self, beta: float | None = None) -> Sensitivities:
        """Return the largest change of the metric by one flip; all but the global sensitivity is secret."""
        # With the labels given, predictive parity may move less where it is defined; but an audit answers 0 where it is
        # not, and between the two a flip moves it by up to 1, which is what it may move by with the labels left open.
        open_labels = len(find_metric(self.metric).strata) == 1
        counts = self._counted(self.metric) if open_labels else self.counts()
        return sensitivities(self.metric, counts, beta, minimum_group=self.records.minimum_group)

    def _counted(self, metric: str) -> tuple[int, int]:
        n0, n1 = (round(self.stands_for * count) for count in self.records.counts(metric))
        return n0, n1

    def smooth(self, beta: float) -> float:
        """Return the smooth sensitivity. Secret."""
        smooth = self.sensitivities(beta).smooth
        assert smooth is not None
        return smooth

    def smallest_change(self) -> float:
        """Return a public number that the local sensitivity is not much below, whatever the counts: 2/n."""
        # 4/n for evenly split groups of n >= 3 and signed gaps, at least half of that for absolute ones.
        return 2 / max(self.people(), 2)


@dataclass(frozen=True, eq=False)
class MechanismAnswer:
    """Answers and facts that a batch buys.

    Parameters
    ----------
    values : the answers, shape (m,). Not bounded to the metric's range unless the mechanism says so.
    facts : bought with the answers: later batches of the account may use them free.
    low, high : guaranteed intervals, shape (m,): each holds the exact gap with a probability of at least
        `fairwall.laws.noise.quantiles.LEVEL`, whatever the protected attributes; computed from the release and public
        numbers alone. May exceed the metric's range. None where not known.
    likely : intervals believed to hold the gaps with that probability, if not the guaranteed ones.
    joint : joint posterior of all gaps, if it tells more than the intervals do.
    """

    values: Floats
    facts: Facts = field(default_factory=lambda: NO_FACTS)
    low: Floats | None = None
    high: Floats | None = None
    likely: Ends | None = None
    joint: Joint | None = field(default=None, repr=False)


def exactly(gaps: Floats) -> MechanismAnswer:
    """Return gaps without noise, with intervals that are points."""
    return MechanismAnswer(gaps, low=gaps, high=gaps)


def ends_of(release: MechanismAnswer) -> tuple[Ends, Ends]:
    """Return the guaranteed and the likely intervals of answers; NaN for none."""
    unknown = np.full(release.values.shape, np.nan)
    guaranteed = (unknown, unknown) if release.low is None or release.high is None else (release.low, release.high)
    return guaranteed, release.likely or guaranteed


def require_inside(released: MechanismAnswer, metric: str) -> None:
    """Raise AssertionError if an answer, cut to the metric's range, lies outside one of its intervals.

    That would be a fault of the mechanism, and nothing is charged for it.
    """
    told = np.clip(released.values, *metric_range(metric))
    for low, high in ends_of(released):
        least, most = within_range(low, high, metric)
        wrong = (told < least - _POINT) | (told > most + _POINT) | (least > most + _POINT)
        if wrong.any():
            raise AssertionError("an answer lies outside its own interval")


def within_ends(values: Floats, *intervals: Ends) -> Floats:
    """Return answers moved to the nearest number in each of their intervals, the last taking precedence; NaN stays NaN.

    An interval is cut to what people with these predictions can have, and an answer may have been moved by a prior:
    both are public, so the nearest number in the interval is the better answer. No answer becomes infinite, or is moved
    into a point, which remains where noise exceeded everything possible.
    """
    for low, high in intervals:
        moved = np.fmax(low, np.fmin(high, values))
        with np.errstate(invalid="ignore"):  # of two infinite ends
            stays = np.isnan(values) | np.isinf(moved) | (high - low < _POINT)
        values = np.where(stays, values, moved)
    return values


def around(values: Floats, ends: Ends) -> Ends:
    """Return intervals extended to their answers, which are finite and were rounded since; NaN stays NaN."""
    low, high = ends
    beyond = np.isnan(values) | np.isnan(low) | np.isnan(high)
    return np.where(beyond, low, np.minimum(low, values)), np.where(beyond, high, np.maximum(high, values))


def with_interval(values: Floats, law: NoiseDistribution, step: float) -> MechanismAnswer:
    """Return a release of values with noise of a public law, on a grid of this step, and its guaranteed intervals."""
    # The exact gap was rounded before.
    reach = noise_reach(law) + step
    return MechanismAnswer(values, low=values - reach, high=values + reach)


class Mechanism(Protocol):
    """A way to answer a batch of metric queries."""

    @property
    def name(self) -> str:
        """The key in `compliance.mechanisms.MECHANISMS` and in scenario files."""

    @property
    def title(self) -> str:
        """The mechanism's name in reports."""

    @property
    def guarantee(self) -> Guarantee:
        """The kind of privacy guarantee: epsilon alone, epsilon and delta, or none."""

    def __hash__(self) -> int:
        """Return a hash: a mechanism is immutable."""

    def refuses(self, metric: str, epsilon: float, delta: float) -> str | None:
        """Return why the batch is refused, None if it is answered. Public: it depends on these three alone."""

    def cost(self, epsilon: float, delta: float) -> Loss:
        """Return the privacy map: the loss charged for a batch at (epsilon, delta); may be infinite.

        ValueError for epsilon <= 0 or NaN, or delta outside [0, 1).
        """

    def release(
        self, question: BatchQuestion, facts: Facts, epsilon: float, delta: float, noise: Noise
    ) -> MechanismAnswer:
        """Return the answers to one batch, on a grid that depends on public numbers alone, unless epsilon is infinite.

        ValueError for an argument out of range, or a batch that `refuses` refuses.

        `question`: secret. `facts`: released by earlier batches of the same account. `epsilon`: of the whole batch,
        above 0; infinite for no noise. `delta`: of the whole batch, in [0, 1).
        """


@runtime_checkable
class Reusable(Protocol):
    """A mechanism that may answer free from an account's earlier purchases."""

    def is_free(self, facts: Facts, epsilon: float, question: BatchQuestion | None = None) -> bool:
        """Return whether a batch at epsilon is free, given what earlier batches have released.

        It is free if and only if one stored release suffices to answer it; of very many releases only some are
        examined. This depends on the question's predictions, never on the protected attributes or the noise.
        """


@runtime_checkable
class Choosing(Protocol):
    """A mechanism that answers each batch with another one, chosen from public numbers alone."""

    def chosen(
        self,
        metric: str,
        people: int,
        queries: int,
        epsilon: float,
        delta: float,
        question: BatchQuestion | None = None,
    ) -> Mechanism:
        """Return the mechanism for a batch of `queries` models, about `people` people in the metric's strata.

        With the question, the mechanism for this very batch, by its predictions; never by the protected attributes.
        """

    def candidates(self, delta: float) -> tuple[Mechanism, ...]:
        """Return all mechanisms that may be chosen at this delta."""


def chosen(
    mechanism: Mechanism,
    metric: str,
    people: int,
    queries: int,
    epsilon: float,
    delta: float,
    question: BatchQuestion | None = None,
) -> Mechanism:
    """Return the mechanism that answers a batch: the given mechanism or its choice. See `Choosing.chosen`."""
    if isinstance(mechanism, Choosing):
        return mechanism.chosen(metric, people, queries, epsilon, delta, question)
    return mechanism


def candidates(mechanism: Mechanism, delta: float) -> tuple[Mechanism, ...]:
    """Return the mechanisms that may answer a batch at this delta."""
    return mechanism.candidates(delta) if isinstance(mechanism, Choosing) else (mechanism,)


@dataclass(frozen=True, eq=False)
class NotProved:
    """A plug-in's mechanism. It may not answer free, nor choose other mechanisms. See `Mechanism`."""

    plugin: Plugin
    own: Mechanism

    @property
    def name(self) -> str:
        """The plug-in's name."""
        return self.plugin.name

    @property
    def title(self) -> str:
        """The plug-in's title, marked as not proved here."""
        return f"{self.own.title} (not proved here)"

    @property
    def guarantee(self) -> Guarantee:
        """The plug-in's promised guarantee."""
        return self.own.guarantee

    def refuses(self, metric: str, epsilon: float, delta: float) -> str | None:
        """Return why such a batch is not answered."""
        return self.plugin.call(self.own.refuses, metric, epsilon, delta)

    def cost(self, epsilon: float, delta: float) -> Loss:
        """Return the plug-in's price of a batch, which must be a `Loss`."""
        loss = self.plugin.call(self.own.cost, epsilon, delta)
        self.plugin.require(isinstance(loss, Loss), "its cost is no Loss")
        return loss

    def release(
        self, question: BatchQuestion, facts: Facts, epsilon: float, delta: float, noise: Noise
    ) -> MechanismAnswer:
        """Return the plug-in's answers, which must be one finite float64 a model."""
        release = self.plugin.call(self.own.release, question, facts, epsilon, delta, noise)
        self.plugin.require(isinstance(release, MechanismAnswer), "released no Release")
        for what, values in (("answers", release.values), ("low", release.low), ("high", release.high)):
            if values is None and what != "answers":
                continue
            found = np.asarray(values)
            fits = found.dtype == np.float64 and found.shape == (question.queries,)
            self.plugin.require(fits, f"its {what} are not one float64 for each of {question.queries} models")
            self.plugin.require(np.isfinite(found).all(), f"its {what} are not finite")
        return release


def of_others(plugin: Plugin, mechanism: Mechanism) -> Mechanism:
    """Wrap a plug-in's mechanism; refused if an attribute of `Mechanism` is missing or wrong."""
    missing = [each for each in dir(Mechanism) if not each.startswith("_") and not hasattr(mechanism, each)]
    plugin.require(not missing, f"is no mechanism: it has no {', '.join(missing)}")
    plugin.require(getattr(mechanism, "name", None) == plugin.name, f"its mechanism is not named {plugin.name}")
    plugin.require(mechanism.guarantee in ("pure", "approximate", "none"), "its guarantee is none that there is")
    return NotProved(plugin, mechanism)
