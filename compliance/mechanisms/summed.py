"""A batch of which sums alone are known: what `cube` and `counts` look at, and nothing else of a `Question`."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from compliance.mechanisms.mechanism import Question
from compliance.records.engine import StratumSums, TableSums
from compliance.records.metrics import GroupSums
from compliance.records.people import Records


@dataclass(frozen=True)
class SummedBatch:
    """What is asked, stratum by stratum; of these n0 and sum0 are secret."""

    strata: tuple[StratumSums, ...]


@dataclass(frozen=True, eq=False)
class SummedQuestion(Question):
    """One batch whose predictions were added up where they are; the records are in no order, and only counted."""

    table: TableSums = field(kw_only=True, repr=False)

    @classmethod
    def of(cls, metric: str, table: TableSums, records: Records) -> SummedQuestion:
        """Ask about a table."""
        return cls(metric, np.zeros((table.models, 0)), records, table=table)

    @cached_property
    def asked(self) -> Any:
        """What mechanisms look at."""
        return SummedBatch(self.table.strata(self.metric))

    def sums(self) -> tuple[GroupSums, ...]:
        """Return what the metric looks at over each group, for each of its parts. Secret."""
        found: dict[int, GroupSums] = {}
        for stratum in self.asked.strata:
            of_parts = (np.split(each, len(stratum.parts)) for each in (stratum.totals, stratum.sum0))
            for i, totals, sum0 in zip(stratum.parts, *of_parts, strict=True):
                found[i] = GroupSums(totals - sum0, sum0, stratum.people - stratum.n0, stratum.n0)
        return tuple(found[i] for i in range(len(found)))
