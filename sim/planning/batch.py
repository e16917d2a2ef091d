"""A batch that may be asked: all that the law of its answers depends on but the models."""

from __future__ import annotations

from dataclasses import dataclass

from compliance.mechanisms.bounding import Bounding
from compliance.records.people import STRATUM_MIN
from fairwall.laws.mechanisms import MECHANISM_LAWS, MechanismLaw
from fairwall.laws.metric import Metric, find_metric
from fairwall.laws.sensitivity import Counts, Sensitivities, sensitivities
from fairwall.laws.standings import SHRUNK


@dataclass(frozen=True)
class Batch:
    """A batch, the first that its account buys.

    Attributes
    ----------
    metric : a key of `fairwall.laws.metric.METRICS`.
    counts : people by label and group, as in the table. Secret.
    queries : m, how many models are asked about.
    epsilon, delta : the whole batch's.
    mechanism : a key of `compliance.mechanisms.MECHANISMS`, with `SHRUNK` behind it where answers move towards no gap.
    bounding : what keeps answers within the metric's range.
    reveal_max : by what limit ``recommended`` chooses; 1 for none.
    """

    metric: str
    counts: Counts
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
        """What is public of the mechanism."""
        return MECHANISM_LAWS[self.mechanism.removesuffix(SHRUNK)]

    @property
    def strata(self) -> tuple[tuple[int, int], ...]:
        """The disadvantaged and the advantaged, (n0, n1), of each of the metric's strata."""
        return tuple(self.counts.groups(label) for label in self.kind.strata)

    @property
    def people(self) -> int:
        """How many people the metric looks at."""
        return sum(sum(groups) for groups in self.strata)

    @property
    def exposed(self) -> int:
        """How many people a limit to what is revealed holds for: `compliance.records.people.Records.exposed`."""
        return len(self.strata) * min(map(sum, self.strata))

    @property
    def auditable(self) -> bool:
        """Whether compliance would audit these people: see `compliance.records.people.Records`."""
        return all(min(groups) >= 1 and sum(groups) >= STRATUM_MIN for groups in self.strata)

    def sensitivities(self, beta: float | None = None) -> Sensitivities:
        """Return what the mechanisms calibrate their noise to: see `compliance.mechanisms.mechanism.Question`."""
        counts = self.strata[0] if len(self.strata) == 1 else self.counts
        return sensitivities(self.metric, counts, beta)
