"""Search for a model that is accurate and fair enough at epsilon, on a table like the user's.

*Can be trained* means: a setting of the developer's private regressions, trained on three quarters of the table, has on
average an accuracy of at least U and a gap of at most F on the last quarter. The average is over the quarter held out
and the noise. The gap is that of demographic parity, the distance between the two groups' rates of positive decisions.
A constant decision counts as a model too; its gap is 0 at every epsilon. The setting is chosen on some trainings and
judged on others, to avoid a bias. Nothing here is private: the table is read without noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from developer.training import Regression
from fairwall.arrays import Bytes
from fairwall.learning.ensemble import unit
from sim.datasets.rows import EncodedRows
from sim.planning import PlanError
from sim.planning.regressions import Design, Outcomes, Parts, free, outcomes, private
from sim.planning.search import first

PARTS = 4
"""Number of parts of a table; each is held out once in a round."""

EPSILON_MAX, TIMES_MAX = 100.0, 1000.0
_EPSILON_MIN, _MEMBERS_MIN = 1e-4, 8
_CLOSE = 1.15
_WORK, _SPLITS_MAX = 10_000_000, 24
_JUDGED, _DOUBLED = 8, 4
_SHORT, _MORE = 6, 4
_CHOOSE, _CHOOSE_AGAIN, _JUDGE = 0, 1, 2


@dataclass(frozen=True)
class Demands:
    """A gap of at most F, in [0, 1], and an accuracy of at least U, in (0, 1), at a model's whole epsilon and delta."""

    epsilon: float
    delta: float
    max_gap: float
    min_accuracy: float

    def __post_init__(self) -> None:
        for option, fits, rule in (
            ("--epsilon", 0 < self.epsilon < math.inf, "must be above 0 and finite"),
            ("--delta", 0 <= self.delta < 1, "must be at least 0 and below 1"),
            ("--max-gap", 0 <= self.max_gap <= 1, "must be at least 0 and at most 1"),
            ("--min-accuracy", 0 < self.min_accuracy < 1, "must be above 0 and below 1"),
        ):
            if not fits:
                raise PlanError(f"{option}: {rule}")


@dataclass(frozen=True)
class TrainingMeasure:
    """The mean of some trainings, the standard deviation of one, and their number."""

    mean: float
    spread: float
    count: int

    @property
    def error(self) -> float:
        """The mean's standard error."""
        return self.spread / math.sqrt(self.count)


@dataclass(frozen=True)
class Judged:
    """Results of trainings with one setting, on other people; ``both`` is the share that meets both demands."""

    setting: Regression
    accuracy: TrainingMeasure
    gap: TrainingMeasure
    both: float
    demands: Demands

    @property
    def margin(self) -> float:
        """The smaller margin of the two means over their demands; below 0 for a demand missed."""
        return min(self.accuracy.mean - self.demands.min_accuracy, self.demands.max_gap - self.gap.mean)

    @property
    def holds(self) -> bool:
        """Whether both means meet the demands."""
        return self.margin >= 0

    @property
    def undecided(self) -> bool:
        """Whether the deciding mean is within two standard errors of its demand."""
        over = self.accuracy.mean - self.demands.min_accuracy, self.demands.max_gap - self.gap.mean
        errors = self.accuracy.error, self.gap.error
        if self.holds:
            return any(margin < 2 * error for margin, error in zip(over, errors, strict=True))
        return all(margin > -2 * error for margin, error in zip(over, errors, strict=True))


def _judged(setting: Regression, results: Outcomes, demands: Demands) -> Judged:
    accuracy, gap = (
        TrainingMeasure(float(values.mean()), float(values.std(ddof=1)), values.size)
        for values in (results.accuracy, results.gap)
    )
    met = (results.accuracy >= demands.min_accuracy) & (results.gap <= demands.max_gap)
    return Judged(setting, accuracy, gap, float(met.mean()), demands)


@dataclass(frozen=True, eq=False)
class TrainingPlan:
    """The models that can be trained on a table, and the epsilon and number of people that would be enough.

    Attributes
    ----------
    groups : people in the disadvantaged and the advantaged group.
    constant : the accuracy of the constant decision for the commoner label.
    best : the best setting at epsilon; None where the constant decision meets the demands.
    most_accurate, least_gap : the best mean accuracy, and the least mean gap, of any setting at epsilon.
    free : the best regression without privacy, where the answer is not a clear yes.
    epsilon : about the smallest epsilon that is enough; None where none up to `EPSILON_MAX` is, or none is needed.
    people : about how many people are enough at epsilon, with the same shares; None likewise, up to `TIMES_MAX` times.
    people_least : the least number that was tried.
    """

    demands: Demands
    groups: tuple[int, int]
    constant: float
    best: Judged | None
    most_accurate: float
    least_gap: float
    free: Judged | None
    epsilon: float | None
    people: int | None
    people_least: int

    @property
    def holds(self) -> bool:
        """Whether the answer is yes."""
        return self.best is None or self.best.holds

    @property
    def undecided(self) -> bool:
        """Whether more trainings might change the answer."""
        return self.best is not None and self.best.undecided

    @property
    def impossible(self) -> bool:
        """Whether no epsilon and no regression without privacy is enough."""
        return self.free is not None and self.epsilon is None and not self.free.holds

    @property
    def everybody(self) -> int:
        """Number of people in the table's two groups."""
        return sum(self.groups)

    @property
    def binding(self) -> str | None:
        """The demand not met: accuracy, gap (constant decisions apart), each, or pair for both at once; else None."""
        if self.holds:
            return None
        inaccurate, unfair = self.most_accurate < self.demands.min_accuracy, self.least_gap > self.demands.max_gap
        return {(True, True): "each", (True, False): "accuracy", (False, True): "gap"}.get((inaccurate, unfair), "pair")

    @property
    def sampling(self) -> tuple[float, float]:
        """Two standard errors of accuracy and gap (at most) between tables of this size, for the same model."""
        accuracy = self.constant if self.best is None else self.best.accuracy.mean
        gap = 0.0 if self.best is None else math.sqrt(sum(0.25 / size for size in self.groups))
        return 2 * math.sqrt(accuracy * (1 - accuracy) / self.everybody), 2 * gap


def make(
    rows: EncodedRows, demands: Demands, progress: Callable[[str], None] = lambda _: None, seed: int = 0
) -> TrainingPlan:
    """Return the plan for the user's table; the same seed gives the same plan.

    ``progress`` is called with what is being tried. Raises PlanError if a group has too few people to hold some out.
    """
    groups = int((rows.protected == 0).sum()), int((rows.protected == 1).sum())
    if min(groups) < _MEMBERS_MIN:
        raise PlanError(
            f"--data: a group has {min(groups)} people; at least {_MEMBERS_MIN} of each are needed to hold some out"
        )
    constant = float(max(rows.labels.mean(), 1 - rows.labels.mean()))
    everybody = sum(groups)
    least = min(everybody, max(4 * PARTS, math.ceil(_MEMBERS_MIN * everybody / min(groups))))
    if constant >= demands.min_accuracy:
        return TrainingPlan(demands, groups, constant, None, constant, 0.0, None, None, None, least)
    progress(f"epsilon {demands.epsilon:,g}")
    trying = Trying(design_of(rows), demands, seed)
    best, tried = trying.at(demands.epsilon, everybody, thorough=True)
    reference = None
    if not best.holds or best.undecided:
        progress("without privacy")
        reference = _without_privacy(trying, rows)

    def at_epsilon(epsilon: float) -> bool:
        progress(f"epsilon {epsilon:,.4g}")
        try:
            return best.holds if epsilon == demands.epsilon else trying.at(epsilon, everybody)[0].holds
        except PlanError:  # delta is too large for this epsilon
            return False

    def at_people(people: float) -> bool:
        if (people >= everybody) == best.holds or people == everybody:
            return best.holds
        progress(f"{people:,.0f} people")
        return trying.at(demands.epsilon, round(people))[0].holds

    epsilon = first(
        at_epsilon,
        demands.epsilon,
        min(_EPSILON_MIN, demands.epsilon),
        max(EPSILON_MAX, demands.epsilon),
        _CLOSE,
    )
    people, most = None, TIMES_MAX * everybody
    if epsilon is not None or (reference is not None and reference.holds):
        # Noise falls about as much with more people as with a larger epsilon.
        about = everybody * (1.0 if epsilon is None else epsilon / demands.epsilon)
        people = first(at_people, min(max(about, least), most), least, most, _CLOSE)
    return TrainingPlan(
        demands,
        groups,
        constant,
        best,
        float(tried.accuracy.mean(1).max()),
        float(tried.gap.mean(1).min()),
        reference,
        epsilon,
        None if people is None else round(people),
        least,
    )


def _without_privacy(trying: Trying, rows: EncodedRows) -> Judged:
    reference = trying.without_privacy()
    if reference.holds:
        return reference
    # Rows are scaled for privacy alone; without privacy they need not be.
    other = replace(trying, design=design_of(rows, scaled=False)).without_privacy()
    return max(reference, other, key=lambda judged: judged.margin)


@dataclass(frozen=True, eq=False)
class Trying:
    """A search that chooses settings on some splits of a table and judges them on others.

    The seed of splits and noise is the same at every epsilon and size, so that only these make a difference.
    """

    design: Design
    demands: Demands
    seed: int

    def at(self, epsilon: float, people: int, *, thorough: bool = False) -> tuple[Judged, Outcomes]:
        """Judge the best setting at epsilon for this many people; also return all settings' outcomes at the choice.

        Fewer people than the table has are drawn from it. For more, each row counts several times: the noise is that of
        the larger table, but the rows carry no more information.
        """
        everybody = len(self.design.labels)
        times = max(1.0, people / everybody)
        settings = private(epsilon, self.demands.delta, times)
        return self._best(settings, min(people, everybody), times, thorough=thorough)

    def without_privacy(self) -> Judged:
        """Judge the best regression without privacy."""
        return self._best(free(), len(self.design.labels), 1.0)[0]

    def _best(
        self, settings: Sequence[Regression], people: int, times: float, *, thorough: bool = False
    ) -> tuple[Judged, Outcomes]:
        splits = (2 if thorough else 1) * min(_SPLITS_MAX, max(2, _WORK // self.design.rows.size))
        tried = self._outcomes(settings, _CHOOSE, splits, people, times)
        short = _in_order(tried, self.demands)[:_SHORT]
        again = self._outcomes([settings[i] for i in short], _CHOOSE_AGAIN, _MORE * splits, people, times)
        both = Outcomes(*(np.hstack([first[short], more]) for first, more in zip(tried, again, strict=True)))
        chosen = settings[short[_in_order(both, self.demands)[0]]]
        judged = self._outcomes([chosen], _JUDGE, _JUDGED * splits, people, times)
        found = _judged(chosen, judged, self.demands)
        for doubling in range(1, _DOUBLED + 1 if thorough else 1):
            if not found.undecided:
                break
            others = self._outcomes([chosen], _JUDGE + doubling, len(judged.gap[0]), people, times)
            judged = Outcomes(*(np.hstack([first, more]) for first, more in zip(judged, others, strict=True)))
            found = _judged(chosen, judged, self.demands)
        return found, tried

    def _outcomes(
        self, settings: Sequence[Regression], stream: int, splits: int, people: int, times: float
    ) -> Outcomes:
        parts = quarters(self.design.groups, people, splits, np.random.default_rng([self.seed, stream]))
        seeds = np.random.SeedSequence([self.seed, stream]).generate_state(parts.splits)
        return outcomes(self.design, parts, settings, [int(seed) for seed in seeds], times)


def _in_order(tried: Outcomes, demands: Demands) -> NDArray[np.intp]:
    """Order settings by their worse margin, in standard deviations of trainings, the best first."""
    by_accuracy = (tried.accuracy.mean(1) - demands.min_accuracy) / (tried.accuracy.std(1).mean() + 1e-9)
    by_gap = (demands.max_gap - tried.gap.mean(1)) / (tried.gap.std(1).mean() + 1e-9)
    return np.asarray(np.minimum(by_accuracy, by_gap).argsort()[::-1])


def design_of(rows: EncodedRows, *, scaled: bool = True) -> Design:
    """Return a table as regressions read it; scaled to rows of norm 1 for private ones."""
    features = unit(rows.features) if scaled else rows.features
    single = np.column_stack([features, np.ones(len(features))]).astype(np.float32)
    return Design(single, rows.labels, rows.protected)


def quarters(groups: Bytes, people: int, splits: int, rng: np.random.Generator) -> Parts:
    """Draw people, deal each group into `PARTS` parts, and hold out one part after the other; then draw again.

    About ``people`` of the n people, whose groups are given, are drawn, at least `PARTS` of each group, with the
    groups' shares kept.
    """
    n = len(groups)
    train, held = (np.zeros((n, splits), np.float32) for _ in range(2))
    for split in range(splits):
        if split % PARTS == 0:
            order = rng.permutation(n)
            members = [order[groups[order] == group] for group in (0, 1)]
            drawn = np.concatenate([group[: max(PARTS, round(people * len(group) / n))] for group in members])
            part = np.arange(len(drawn)) % PARTS
        held[drawn[part == split % PARTS], split] = 1
        train[drawn[part != split % PARTS], split] = 1
    return Parts(train, held)
