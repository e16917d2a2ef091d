"""A planned batch: all that the distribution of its answers depends on except the models."""

from __future__ import annotations

from dataclasses import dataclass

from compliance.mechanisms.bounding import Bounding
from compliance.records.people import STRATUM_MIN
from fairwall.laws.mechanisms import MECHANISM_LAWS, MechanismLaw
from fairwall.laws.metric import Metric, find_metric
from fairwall.laws.sensitivity import LabelGroupCounts, Sensitivities, sensitivities
from fairwall.laws.standings import SHRUNK


@dataclass(frozen=True)
class PlannedBatch:
    """A batch, the first that its account buys; epsilon and delta are the whole batch's.

    ``metric`` and ``mechanism`` are keys of `fairwall.laws.metric.METRICS` and `compliance.mechanisms.MECHANISMS`, the
    latter followed by `SHRUNK` where answers are shrunk towards 0. ``counts`` are secret. ``queries`` is m, the number
    of models. ``reveal_max`` is the limit by which ``recommended`` chooses, 1 for none.
    """

    metric: str
    counts: LabelGroupCounts
    queries: int
    epsilon: float
    delta: float
    mechanism: str
    bounding: Bounding
    reveal_max: float = 1.0

    @property
    def kind(self) -> Metric:
        """The metric's public description."""
        return find_metric(self.metric)

    @property
    def law(self) -> MechanismLaw:
        """The mechanism's public description."""
        return MECHANISM_LAWS[self.mechanism.removesuffix(SHRUNK)]

    @property
    def strata(self) -> tuple[tuple[int, int], ...]:
        """Disadvantaged and advantaged people, (n0, n1), of each of the metric's strata."""
        return tuple(self.counts.groups(label) for label in self.kind.strata)

    @property
    def people(self) -> int:
        """Number of people whom the metric covers."""
        return sum(sum(groups) for groups in self.strata)

    @property
    def exposed(self) -> int:
        """Number of people for whom a limit on attacks holds: `compliance.records.people.Records.exposed`."""
        return len(self.strata) * min(map(sum, self.strata))

    @property
    def auditable(self) -> bool:
        """Whether compliance would audit these people: see `compliance.records.people.Records`."""
        return all(min(groups) >= 1 and sum(groups) >= STRATUM_MIN for groups in self.strata)

    def sensitivities(self, beta: float | None = None) -> Sensitivities:
        """Return the sensitivities to which mechanisms calibrate noise."""
        counts = self.strata[0] if len(self.strata) == 1 else self.counts
        return sensitivities(self.metric, counts, beta)
