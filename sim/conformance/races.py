"""The kinds of steps with simultaneous calls: on one budget, and to servers that start together."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

from pydantic import Field

from sim.conformance import law
from sim.conformance.audits import AuditStep
from sim.conformance.calls import CallResult, ProtocolViolation
from sim.conformance.dependence import AnsweredBatch, require_nothing_depends
from sim.conformance.purchases import PurchaseStep, repeated, together
from sim.conformance.services import on
from sim.conformance.vocabulary import Expect, Number, Predictions, Words
from sim.conformance.world import CaseState, NotRun, Result


class Race(Words):
    """A step in which callers make `calls` calls each, all at the same time; each call has its own id.

    `answered` of them must be answered; the others are refused because of the budget, and report the remainder. Each
    caller must then have `left`. With `also` every other call goes to another deployment with the same ledger, and
    repeats go to the other one of the two. With `one_request` all calls of a caller have one id.
    """

    do: Literal["race"]
    callers: tuple[str, ...]
    deployment: str = ""
    also: str = ""
    one_request: bool = False
    calls: int = Field(default=1, ge=1)
    epsilon: Number
    answered: int
    left: float

    def run(self, world: CaseState) -> None:
        """Make the calls, and count the answers."""
        places = (self.deployment, self.also or self.deployment)
        steps: list[PurchaseStep] = [
            # `callers` are those of this service already.
            on(
                world.service, AuditStep(do="audit", id=f"race-{world.step}-{caller}-{name}", epsilon=self.epsilon)
            ).model_copy(update={"caller": caller, "deployment": places[number % 2]})
            for number in range(self.calls)
            for name in ["" if self.one_request else number]
            for caller in self.callers
        ]
        account = steps[0].ACCOUNT
        for caller in self.callers:
            for place in places:
                world.remaining(caller, place, account)  # so that all are connected
        ends = [seen for _, _, seen in together(world, steps)]
        for seen in ends:
            if not seen.answered:
                Expect(refused=("BUDGET_EXHAUSTED",)).check_end(seen)
        if (count := sum(seen.answered for seen in ends)) != self.answered:
            raise ProtocolViolation(f"{count} of {len(ends)} calls at the same time were answered; {self.answered} fit")
        for caller, place in itertools.product(self.callers, places):
            if (left := world.remaining(caller, place, account)) != self.left:
                raise ProtocolViolation(f"{caller} has epsilon {left!r} left; it should be {self.left!r}")
        for step, seen in zip(steps, ends, strict=True):
            elsewhere = step.model_copy(update={"deployment": places[step.deployment == places[0]]})
            again = elsewhere.ask(world, elsewhere.asked(world))
            if again.answered != seen.answered:
                raise ProtocolViolation(f"a call {seen.text}, and {again.text} when it was made again")
            if seen.answered and repeated(again) != repeated(seen):
                raise ProtocolViolation("the same request got another answer")


class Twins(Words):
    """A step that starts deployments anew, all at the same time, and makes the same calls to them at the same time.

    They differ at most in their people. Two callers make `calls` calls each, to each deployment and by each protected
    column, `times` times. The noise of calls with the same question must not be correlated.
    """

    do: Literal["twins"]
    deployments: tuple[str, ...] = Field(min_length=1)
    by: tuple[str, ...] = ("",)
    calls: int = Field(default=4, ge=1, le=8)
    times: int = Field(default=2, ge=1)
    models: int = 20
    anew: bool = True

    def run(self, world: CaseState) -> None:
        """Start the deployments, make the calls, and test the noise."""
        if not world.subject.starts:
            raise NotRun("needs a server that the tester starts")
        if self.anew:
            world.forget_connections()
            with ThreadPoolExecutor(len(self.deployments)) as starting:
                list(starting.map(world.subject.renew, self.deployments))
            for deployment in self.deployments:
                world.forget_purchases(deployment)
        batches = list(itertools.chain.from_iterable(self._ask(world, time) for time in range(self.times)))
        require_nothing_depends(batches)

    def _ask(self, world: CaseState, time: int) -> list[AnsweredBatch]:
        steps: list[PurchaseStep] = [
            on(
                world.service,
                AuditStep(
                    do="audit",
                    caller=caller,
                    deployment=deployment,
                    # The same id for each of the deployments, and for each of the callers.
                    id=f"twin-{world.step}-{time}-{number}-{by}",
                    by=by,
                    epsilon=1,
                    predictions=Predictions(models=self.models),
                ),
            )
            for number in range(self.calls)
            for caller in ("developer", "other")
            for deployment in self.deployments
            for by in self.by
        ]
        for step in steps:
            world.open_account(step.caller, step.deployment, step.ACCOUNT)
        batches, alike = [], dict[str, list[Result]]()
        for step, each, seen in sorted(together(world, steps), key=_left):
            step.expect.check_end(seen)
            result = step.check_answer(world, each, seen)
            if result.uniform is None or result.exact is None or result.noise is None:
                raise NotRun("needs the table of the test set, and a mechanism whose law the tester knows")
            for other in alike.setdefault(step.id.rpartition("-")[0], []):
                law.require_unrelated(result, other)
            alike[step.id.rpartition("-")[0]].append(result)
            asked_for = {"caller": step.caller, "deployment": step.deployment, "time": time}
            answers = result.exact if result.discrete else result.noise + result.exact
            batches.append(AnsweredBatch(asked_for, 2 * result.uniform - 1, result.exact, answers))
        return batches


def _left(call: tuple[PurchaseStep, Any, CallResult]) -> float:
    """Return a sort key for the order in which answers were charged."""
    step, _, seen = call
    return -float(step.told(seen).epsilon_remaining) if seen.answered else 0.0
