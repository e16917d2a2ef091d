"""The costs of one account's batches, where an earlier purchase may answer a later batch free."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from compliance.answers.audits import AuditCase
from compliance.ledger.accountant import FREE, Loss
from compliance.mechanisms.mechanism import NO_FACTS, BatchQuestion, Facts, Mechanism, Reusable, chosen
from compliance.mechanisms.noise_on_gaps import Bounded
from compliance.noise.sampling import noise_for
from fairwall.wire.metrics import name_of
from sim.transcripts.messages import RecordedBatch


@dataclass(frozen=True, eq=False)
class _Sold:
    """A charged batch, whose purchase may answer a later batch."""

    batch: RecordedBatch
    mechanism: Mechanism
    question: BatchQuestion
    delta: float

    @cached_property
    def facts(self) -> Facts:
        """The facts that the batch bought, under any noise: public numbers alone decide whether an answer is free."""
        noise = noise_for(b"", self.batch.request_id)
        return self.mechanism.release(self.question, NO_FACTS, self.batch.epsilon, self.delta, noise).facts


def charges(case: AuditCase, batches: Iterable[tuple[RecordedBatch, float]]) -> Iterator[Loss | None]:
    """Yield each batch's cost, in the order of charges; None where missing predictions leave it unknown.

    A batch that an earlier purchase answers costs nothing, unless it was requested while the purchase was under way: it
    may have been charged first. Each batch comes with its reported charge; the case has the records and the mechanism.
    """
    mechanism = case.mechanism.mechanism if isinstance(case.mechanism, Bounded) else case.mechanism
    sold: list[_Sold] = []
    is_known = True
    for batch, charged in batches:
        metric = name_of(batch.metric)
        question = None if batch.predictions is None else BatchQuestion(metric, batch.predictions, case.records)
        people = sum(case.records.counts(metric))
        answering = chosen(mechanism, metric, people, batch.models, batch.epsilon, case.delta, question)
        loss = answering.cost(batch.epsilon, case.delta)
        if not isinstance(mechanism, Reusable):
            yield loss
            continue
        if not is_known or (sold and question is None):
            is_known = False
            yield None
            continue
        enough = [one.batch for one in sold if mechanism.is_free(one.facts, batch.epsilon, question)]
        if enough and (charged == 0 or any(batch.asked > one.answered for one in enough)):
            yield FREE
            continue
        yield loss
        if question is None:
            is_known = False  # its purchase may answer any later batch
        else:
            sold.append(_Sold(batch, mechanism, question, case.delta))
