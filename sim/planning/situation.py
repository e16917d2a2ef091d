"""The figures of a table that advice uses: the groups, their labels, and the errors of sampling and noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fairwall.laws.privacy.exposure import REVEAL_MAX
from sim.planning.answer_laws import PlannedBatch
from sim.planning.audit import AuditPlan, make
from sim.planning.rate_error import of_noise, of_sampling
from sim.planning.table import ColumnNames, GroupTable, load

_NORMAL_95 = 1.959964


@dataclass(frozen=True)
class Situation:
    """A table as named, and `fairwall plan audit`'s answer for one model's statistical parity gap. Secret: no noise."""

    columns: ColumnNames
    table: GroupTable
    epsilon: float
    within: float
    audit: AuditPlan

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of disadvantaged and of advantaged people."""
        ((n0, n1),) = self.audit.batch.strata
        return n0, n1

    @property
    def people(self) -> int:
        """Number of people in both groups."""
        return sum(self.sizes)

    @property
    def smallest(self) -> int:
        """The smaller group, 0 or 1."""
        return int(self.sizes[1] < self.sizes[0])

    @property
    def share(self) -> float:
        """The smaller group's share of all people."""
        return self.sizes[self.smallest] / self.people

    @property
    def base_rates(self) -> tuple[float, float]:
        """Each group's rate of label 1."""
        counts, (n0, n1) = self.table.counts, self.sizes
        return counts.n10 / n0, counts.n11 / n1

    @property
    def sampling_errors(self) -> tuple[float, float]:
        """The standard error of each group's label rate as an estimate of the population's."""
        n0, n1 = self.sizes
        counts = self.table.counts
        # With two more people, one of each label: a rate of 0 among few people is not certain.
        return (
            of_sampling((counts.n10 + 1) / (n0 + 2), n0),
            of_sampling((counts.n11 + 1) / (n1 + 2), n1),
        )

    @property
    def noise_errors(self) -> tuple[float, float]:
        """The error of each group's rate released at epsilon, with Laplace noise on one count."""
        return of_noise(self.epsilon, self.sizes[0]), of_noise(self.epsilon, self.sizes[1])

    @property
    def reach(self) -> float:
        """Half-width of the 95% interval of the labels' gap around the population's, without any noise."""
        return _NORMAL_95 * math.hypot(*self.sampling_errors)

    @property
    def people_for_reach(self) -> int:
        """Number of people, with these shares, that brings `reach` down to F."""
        return math.ceil(self.people * (self.reach / self.within) ** 2)


def look(columns: ColumnNames, epsilon: float, within: float) -> Situation:
    """Read a table, and compute its figures."""
    table = load(columns)
    return judge(columns, table, epsilon, within)


def judge(columns: ColumnNames, table: GroupTable, epsilon: float, within: float) -> Situation:
    """Compute a table's figures; PlanError for epsilon or F out of range, or a table too small to be audited."""
    batch = PlannedBatch("sp", table.counts, 1, epsilon, 0.0, "recommended", "clamp", REVEAL_MAX)
    return Situation(columns, table, epsilon, within, make(batch, within))
