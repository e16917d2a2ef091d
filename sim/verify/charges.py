"""What batches of one account cost, where what an earlier one bought may answer a later one for nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from compliance.answers.audits import Case
from compliance.ledger.accountant import FREE, Loss
from compliance.mechanisms.bounding import Bounded
from compliance.mechanisms.mechanism import NO_FACTS, Facts, Mechanism, Question, Reusable, chosen
from compliance.noise.sampling import noise_for
from fairwall.wire.metrics import name_of
from sim.transcripts.messages import Batch


@dataclass(frozen=True, eq=False)
class _Sold:
    """A batch that was charged, in which a later batch may find its answer."""

    batch: Batch
    mechanism: Mechanism
    question: Question
    delta: float

    @cached_property
    def facts(self) -> Facts:
        """What it bought, by itself; of any noise, since what is free follows from public numbers alone."""
        noise = noise_for(b"", self.batch.request_id)
        return self.mechanism.release(self.question, NO_FACTS, self.batch.epsilon, self.delta, noise).facts


def charges(case: Case, batches: Iterable[tuple[Batch, float]]) -> Iterator[Loss | None]:
    """Yield what each batch cost, in the order of charges; None without predictions, by which it would be told.

    A batch that an earlier one answers for nothing costs nothing, but for one that was asked while that one was under
    way: it may have been charged before the other was bought. Each batch comes with what it was charged; the case is
    that of the records, and of the mechanism, that were asked.
    """
    mechanism = case.mechanism.mechanism if isinstance(case.mechanism, Bounded) else case.mechanism
    sold: list[_Sold] = []
    is_known = True
    for batch, charged in batches:
        metric = name_of(batch.metric)
        question = None if batch.predictions is None else Question(metric, batch.predictions, case.records)
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
            is_known = False  # what it bought may answer any later one
        else:
            sold.append(_Sold(batch, mechanism, question, case.delta))
