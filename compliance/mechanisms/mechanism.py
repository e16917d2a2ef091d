"""What every mechanism can do: say what it does not answer, tell its price, and answer."""

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
from compliance.records.metrics import GroupSums, gaps
from compliance.records.people import Records
from fairwall.laws.alternatives import Candidates
from fairwall.laws.batch import AskedBatch, Stratum
from fairwall.laws.bounding import metric_range
from fairwall.laws.metric import find_metric
from fairwall.laws.noise import Law
from fairwall.laws.quantiles import noise_reach
from fairwall.laws.sensitivity import Counts, Sensitivities, sensitivities

Facts: TypeAlias = Mapping[str, NDArray[Any]]
"""Numbers that an account has bought and may use again for nothing, by name. Names, types and shapes are public."""

Guarantee: TypeAlias = Literal["pure", "approximate", "none"]

_POINT = 1e-9
"""No interval that noise has made is as narrow."""

Joint: TypeAlias = Callable[[int, np.random.Generator], NDArray[np.float64]]
"""Draws so many sets of a batch's gaps from their joint posterior, shape (draws, m); nothing secret is looked at."""

NO_FACTS: Facts = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class Question:
    """One batch.

    Parameters
    ----------
    metric : a key of `compliance.records.metrics.METRICS` that the records are audited for.
    predictions : ndarray
        Shape (m, n) with m at least 1: m models' predictions for everybody, each in [0, 1], as of
        `fairwall.laws.values.Values`. Public to who asks.
    records : secret.
    stands_for : how many people each of them stands for, who do not exist.
    candidates : what the models are candidates for, where the least gap is searched for. Public.
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
        """How many models are asked about: m."""
        return len(self.predictions)

    @cached_property
    def asked(self) -> AskedBatch:
        """All of it that is public to who asks."""
        return AskedBatch(self.metric, self.predictions, self.records.labels, self.records.metrics, self.stands_for)

    def gaps(self) -> NDArray[np.float64]:
        """Return what the metric says of each model. Secret."""
        return self._gaps.copy()

    @cached_property
    def _gaps(self) -> NDArray[np.float64]:
        # A game's case asks for them besides the mechanism.
        return gaps(self.metric, self.sums())

    def sums(self) -> tuple[GroupSums, ...]:
        """Add up what the metric looks at over each group, for each of its parts. Secret."""
        return self.records.group_sums(self.metric, self.predictions)

    def sums_of_steps(self, stratum: Stratum, pieces: Iterable[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Add up over the disadvantaged what each member counts, in pieces of some rows, (r, people) each. Secret."""
        sums = [self.records.sums_of_disadvantaged(stratum.members, rows) for rows in pieces]
        return np.concatenate([np.empty(0), *sums])

    def counts(self) -> Counts:
        """Count the people by label and group. Secret; by label alone it is public."""
        (n00, n01), (n10, n11) = self._counted("fpr"), self._counted("eo")
        return Counts(n00=n00, n01=n01, n10=n10, n11=n11)

    def people(self) -> int:
        """How many people the metric looks at. Public, since the labels are."""
        return sum(self._counted(self.metric))

    def sensitivities(self, beta: float | None = None) -> Sensitivities:
        """Return how far one flip moves the metric; all but the global sensitivity is secret."""
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
class Release:
    """What a batch buys.

    Parameters
    ----------
    values : ndarray of float64
        The answers, shape (m,). Not bounded to the metric's range unless the mechanism says so.
    facts : what else the batch has bought: later batches of the account get it back and pay nothing for it.
    low, high : ndarray of float64 or None
        Between what numbers the exact gaps lie with a probability of at least `fairwall.laws.quantiles.LEVEL`
        each, shape (m,), whoever is who; computed from what is released and from public numbers alone. They may lie
        outside the metric's range. None where no such numbers are known.
    likely : between what numbers they are believed to lie as often, where that is something else.
    joint : what is believed of all gaps together, where that is more than each answer's interval says.
    """

    values: NDArray[np.float64]
    facts: Facts = field(default_factory=lambda: NO_FACTS)
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None
    likely: Ends | None = None
    joint: Joint | None = field(default=None, repr=False)


def exactly(gaps: NDArray[np.float64]) -> Release:
    """Release gaps without noise: their intervals are points."""
    return Release(gaps, low=gaps, high=gaps)


def ends_of(release: Release) -> tuple[Ends, Ends]:
    """Return the intervals of answers, guaranteed and likely; NaN where there is none."""
    unknown = np.full(release.values.shape, np.nan)
    guaranteed = (unknown, unknown) if release.low is None or release.high is None else (release.low, release.high)
    return guaranteed, release.likely or guaranteed


def require_inside(released: Release, metric: str) -> None:
    """Look whether each answer lies in its intervals, as they are told; AssertionError where one does not.

    That would be a fault of the mechanism, and nothing is charged for it.
    """
    told = np.clip(released.values, *metric_range(metric))
    for low, high in ends_of(released):
        least, most = within_range(low, high, metric)
        wrong = (told < least - _POINT) | (told > most + _POINT) | (least > most + _POINT)
        if wrong.any():
            raise AssertionError("an answer lies outside its own interval")


def within_ends(values: NDArray[np.float64], *intervals: Ends) -> NDArray[np.float64]:
    """Move answers to the nearest number in each of their intervals, the last one at any rate; NaN stays NaN.

    An interval is cut to what people of these predictions can have, and an answer may have been moved by a prior: both
    are public, and so the nearest number that the interval holds is the better answer. None becomes infinite, or is
    moved into a point, which is left where noise was beyond all that can be.
    """
    for low, high in intervals:
        moved = np.fmax(low, np.fmin(high, values))
        with np.errstate(invalid="ignore"):  # of two infinite ends
            stays = np.isnan(values) | np.isinf(moved) | (high - low < _POINT)
        values = np.where(stays, values, moved)
    return values


def around(values: NDArray[np.float64], ends: Ends) -> Ends:
    """Let intervals reach to their answers, which are finite, and were rounded since; NaN stays NaN."""
    low, high = ends
    beyond = np.isnan(values) | np.isnan(low) | np.isnan(high)
    return np.where(beyond, low, np.minimum(low, values)), np.where(beyond, high, np.maximum(high, values))


def with_interval(values: NDArray[np.float64], law: Law, step: float) -> Release:
    """Release values that noise of a public law was added to, on a grid of this step."""
    # The exact gap was rounded before.
    reach = noise_reach(law) + step
    return Release(values, low=values - reach, high=values + reach)


class Mechanism(Protocol):
    """A way to answer a batch of metric queries."""

    @property
    def name(self) -> str:
        """The key in `compliance.mechanisms.MECHANISMS` and in scenario files."""

    @property
    def title(self) -> str:
        """What people call it, in reports."""

    @property
    def guarantee(self) -> Guarantee:
        """Which privacy is promised: epsilon alone, epsilon and delta, or none."""

    def __hash__(self) -> int:
        """Tell it from others: a mechanism does not change."""

    def refuses(self, metric: str, epsilon: float, delta: float) -> str | None:
        """Return why such a batch is not answered, None where it is. Public: it depends on these three alone."""

    def cost(self, epsilon: float, delta: float) -> Loss:
        """Return the privacy map: the loss that a batch asked for at (epsilon, delta) is charged; maybe infinite.

        Raises ValueError for epsilon <= 0 or NaN, or delta outside [0, 1).
        """

    def release(self, question: Question, facts: Facts, epsilon: float, delta: float, noise: Noise) -> Release:
        """Return the answers to one batch.

        ValueError for an argument out of range, or a batch that `refuses` refuses.

        Parameters
        ----------
        question : the batch. Secret.
        facts : what earlier batches of the same account have released.
        epsilon : privacy budget of the whole batch, above 0; infinite for no noise.
        delta : the same, in [0, 1).
        noise : where the noise comes from.

        Returns
        -------
        Release
            Every value lies on a grid that depends on public numbers alone, unless epsilon is infinite.
        """


@runtime_checkable
class Reusable(Protocol):
    """A mechanism that may answer from what an account has bought before, for nothing."""

    def is_free(self, facts: Facts, epsilon: float, question: Question | None = None) -> bool:
        """Return whether a batch asked for at epsilon costs nothing, given what earlier batches have released.

        It is free if and only if one stored release suffices to answer it; of very many releases only some are looked
        at. This depends on the question's predictions, never on the protected attributes or the noise.
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
        question: Question | None = None,
    ) -> Mechanism:
        """Return what answers a batch of so many queries, about so many people in the metric's strata.

        With the question, what answers this very batch, by its predictions; never by the protected attributes.
        """

    def candidates(self, delta: float) -> tuple[Mechanism, ...]:
        """Return all that may be chosen at this delta."""


def chosen(
    mechanism: Mechanism,
    metric: str,
    people: int,
    queries: int,
    epsilon: float,
    delta: float,
    question: Question | None = None,
) -> Mechanism:
    """Return what answers a batch: the mechanism, or the one that it chooses. See `Choosing.chosen`."""
    if isinstance(mechanism, Choosing):
        return mechanism.chosen(metric, people, queries, epsilon, delta, question)
    return mechanism


def candidates(mechanism: Mechanism, delta: float) -> tuple[Mechanism, ...]:
    """Return what may answer a batch at this delta."""
    return mechanism.candidates(delta) if isinstance(mechanism, Choosing) else (mechanism,)
