"""The kinds of steps that repeat a call, to one deployment or to several, and compare the results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import numpy as np
from pydantic import Field

from sim.conformance import law, told
from sim.conformance.audits import AuditStep
from sim.conformance.calls import CallResult, ProtocolViolation
from sim.conformance.purchases import Predicted, PurchaseStep
from sim.conformance.services import Bought, on
from sim.conformance.vocabulary import Number, Predictions, Words
from sim.conformance.world import CaseState, NotRun


class Repeated(Words):
    """A step that asks the same question repeatedly, each time under another id, and tests all the noise together.

    If its case is put to another service, the step asks that service; so does every other kind here.
    """

    do: Literal["repeated"]
    calls: int = Field(ge=2)
    metric: str | None = None
    epsilon: Number = 1.0
    predictions: Predictions = Predictions()

    def run(self, world: CaseState) -> None:
        """Request answers, and test their noise."""
        numbers = []
        for number in range(self.calls):
            name = f"repeated-{world.step}-{number}"
            own = {"metric": self.metric, "epsilon": self.epsilon, "predictions": self.predictions}
            on(world.service, AuditStep(do="audit", name=name, id=name, **own)).run(world)
            found = world.results.pop(name).uniform
            if found is None:
                raise NotRun("needs a mechanism whose law the tester knows")
            numbers.append(2 * found - 1)
        law.require_noise_everywhere(np.stack(numbers))


class Alike(Words):
    """A step that makes the same calls to several deployments, and demands that all end in the same way, word for word.

    The end itself does not matter, only what callers see of it. With `each_person` each request is made once per
    person, with this prediction about that person.
    """

    do: Literal["alike"]
    deployments: tuple[str, ...] = Field(min_length=2)
    requests: tuple[Bought, ...] = Field(min_length=1)
    each_person: float | None = None

    def run(self, world: CaseState) -> None:
        """Make the calls, and compare their ends."""
        for number, request in enumerate(self._requests(world)):
            ends = [self._end(world, request, number, deployment) for deployment in self.deployments]
            if any(end != ends[0] for end in ends):
                told = "; ".join(f"{name}: {end.text}" for name, end in zip(self.deployments, ends, strict=True))
                raise ProtocolViolation(f"call {number + 1} ended otherwise for other people: {told}")

    def _requests(self, world: CaseState) -> Iterator[PurchaseStep]:
        for request in self.requests:
            if isinstance(request, Predicted) and self.each_person is not None:
                yield from request.model_copy(update={"each_person": self.each_person}).each(world)
            else:
                yield request

    def _end(self, world: CaseState, request: PurchaseStep, number: int, deployment: str) -> CallResult:
        # Ids have the step's number: a case may have several such steps.
        own = {"deployment": deployment, "id": f"alike-{world.step}-{number}"}
        step = request.model_copy(update=own)
        world.open_account(step.caller, deployment, step.ACCOUNT)
        asked = step.asked(world)
        seen = step.ask(world, asked)
        if seen.answered:
            step.check_answer(world, asked, seen)
        return replace(
            seen, messages=tuple(told.without_noise(each, world.about(deployment)) for each in seen.messages)
        )
