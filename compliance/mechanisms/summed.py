"""A batch whose predictions who asks does not see: models that are handed over, and tables in an engine.

What is told of it must not depend on predictions but through noise: no interval's width, no choice of what answers and
nothing that answers for nothing. So it is answered from what predictions add up to alone, by `cube` or `counts`, whose
noise has the same law whatever they are. The total over everybody gets noise of that law too: it depends on nobody's
protected attribute and so costs nothing, and whose features it adds up are hidden in it as a protected attribute is in
the other sums.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from compliance.mechanisms.counts import CountsMechanism
from compliance.mechanisms.cube import CubeMechanism
from compliance.mechanisms.mechanism import Mechanism, Question
from compliance.records.metrics import GroupSums
from compliance.records.people import Records
from compliance.records.sums import StratumSums, TableSums
from fairwall.laws.exposure import Limit, within


def answering(mechanism: Mechanism, metric: str, exposed: int, models: int, epsilon: float, limit: Limit) -> Mechanism:
    """Return what answers such a batch in a mechanism's place: `cube`, and `counts` for itself or within a limit.

    `exposed` is as of `fairwall.laws.exposure.revealed`.
    """
    if mechanism.name == CountsMechanism.name:
        return CountsMechanism()
    names = CubeMechanism.name, CountsMechanism.name
    return BY_SUMS[within(names, metric, exposed, models, epsilon, 0.0, limit)[0]]


BY_SUMS: Mapping[str, Mechanism] = {each.name: each for each in (CubeMechanism(), CountsMechanism())}
"""What answers from sums alone."""


@dataclass(frozen=True)
class SummedBatch:
    """What is asked, stratum by stratum. Secret, but for how many people there are."""

    strata: tuple[StratumSums, ...]


@dataclass(frozen=True, eq=False)
class Unseen:
    """Predictions of so many models that who asks does not see: `sums` adds them up, once the answer is paid for."""

    models: int
    sums: Callable[[], TableSums] = field(repr=False)


@dataclass(frozen=True, eq=False)
class SummedQuestion(Question):
    """One batch whose predictions were added up where they are; the records are in no order, and only counted."""

    unseen: Unseen = field(kw_only=True, repr=False)

    @classmethod
    def of(cls, metric: str, unseen: Unseen, records: Records) -> SummedQuestion:
        """Ask about predictions that nobody sees."""
        return cls(metric, np.zeros((unseen.models, 0)), records, unseen=replace(unseen, sums=cache(unseen.sums)))

    # A cached property would hold a lock of all batches meanwhile, up to Python 3.11.
    @property
    def asked(self) -> Any:
        """What mechanisms look at."""
        return SummedBatch(self.unseen.sums().strata(self.metric))

    def sums(self) -> tuple[GroupSums, ...]:
        """Return what the metric looks at over each group, for each of its parts. Secret."""
        found: dict[int, GroupSums] = {}
        for stratum in self.asked.strata:
            of_parts = (np.split(each, len(stratum.parts)) for each in (stratum.totals, stratum.sum0))
            for i, totals, sum0 in zip(stratum.parts, *of_parts, strict=True):
                found[i] = GroupSums(totals - sum0, sum0, stratum.people - stratum.n0, stratum.n0)
        return tuple(found[i] for i in range(len(found)))
