"""A batch whose predictions the developer does not see: of uploaded models, or of tables in an engine.

Nothing shown of it may depend on predictions except through noise: no interval's width, no choice of a mechanism, and
no free answer. So it is answered from sums of predictions alone, by `cube` or `counts`, whose noise has the same
distribution whatever they are. The total over everybody gets noise of that distribution too: it depends on nobody's
protected attribute and so costs nothing, and hides the features that enter it as a protected attribute is hidden in the
other sums.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from compliance.mechanisms.counts import CountsMechanism
from compliance.mechanisms.cube import CubeMechanism
from compliance.mechanisms.mechanism import BatchQuestion, Mechanism
from compliance.records.metrics import MetricSums
from compliance.records.people import Records
from compliance.records.sums import StratumSums, TableSums
from fairwall.laws.exposure import Limit, within


def answering(mechanism: Mechanism, metric: str, exposed: int, models: int, epsilon: float, limit: Limit) -> Mechanism:
    """Return the mechanism that answers such a batch instead: `cube`, or `counts` for itself or within a limit.

    `exposed` is as in `fairwall.laws.exposure.revealed`.
    """
    if mechanism.name == CountsMechanism.name:
        return CountsMechanism()
    names = CubeMechanism.name, CountsMechanism.name
    return BY_SUMS[within(names, metric, exposed, models, epsilon, 0.0, limit)[0]]


BY_SUMS: Mapping[str, Mechanism] = {each.name: each for each in (CubeMechanism(), CountsMechanism())}
"""Mechanisms that answer from sums alone."""


@dataclass(frozen=True)
class SummedBatch:
    """The sums of a batch by stratum. Secret, except the numbers of people."""

    strata: tuple[StratumSums, ...]


@dataclass(frozen=True, eq=False)
class UnseenPredictions:
    """Predictions that the developer does not see: `sums` computes their sums, once the answer is paid for."""

    models: int
    sums: Callable[[], TableSums] = field(repr=False)


@dataclass(frozen=True, eq=False)
class SummedQuestion(BatchQuestion):
    """One batch whose predictions were summed in place; the records have no order, and are only counted."""

    unseen: UnseenPredictions = field(kw_only=True, repr=False)

    @classmethod
    def of(cls, metric: str, unseen: UnseenPredictions, records: Records) -> SummedQuestion:
        """Return a question about predictions that nobody sees."""
        return cls(metric, np.zeros((unseen.models, 0)), records, unseen=replace(unseen, sums=cache(unseen.sums)))

    # A cached property would hold a lock of all batches meanwhile, up to Python 3.11.
    @property
    def asked(self) -> Any:
        """The batch's sums, which mechanisms read."""
        return SummedBatch(self.unseen.sums().strata(self.metric))

    def sums(self) -> tuple[MetricSums, ...]:
        """Return sums over each group, for each of the metric's parts. Secret."""
        found: dict[int, MetricSums] = {}
        for stratum in self.asked.strata:
            of_parts = (np.split(each, len(stratum.parts)) for each in (stratum.totals, stratum.sum0))
            for i, totals, sum0 in zip(stratum.parts, *of_parts, strict=True):
                found[i] = MetricSums(totals - sum0, sum0, stratum.people - stratum.n0, stratum.n0)
        return tuple(found[i] for i in range(len(found)))
