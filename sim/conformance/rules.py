"""The kind of step that spends a share completely, under any of the policy's composition rules.

Each rule's epsilon is computed again here, in float64, from the table in docs/ledger.md.
"""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from fairwall.laws.gaussian import gaussian_epsilon, gaussian_multiplier
from fairwall.laws.mechanisms import MECHANISM_LAWS, NoiseInputs
from fairwall.laws.noise import Gaussian
from sim.conformance.audits import AuditStep
from sim.conformance.calls import ProtocolViolation
from sim.conformance.target import DescribedDeployment
from sim.conformance.vocabulary import Words
from sim.conformance.world import CaseState

_OFF = 1e-6
"""Tolerance for float64 and for the rounding of reported budgets, relative to the share."""


class SpentStep(Words):
    """A step that requests equal batches until one is refused; after each, the rule decides the remaining budget.

    The caller's share must be unspent. A batch at `first` may come before those at `epsilon`. At most `most` calls are
    made; with `batches` that many are answered, because delta runs out, whatever epsilon would be left.
    """

    do: Literal["spent"]
    caller: str
    epsilon: float
    first: float | None = None
    most: int = Field(default=200, ge=1)
    batches: int | None = None

    def run(self, world: CaseState) -> None:
        """Spend the share, and check the remaining budget."""
        about = world.about()
        share = about.shares[world.subject.target.developer(self.caller)]
        charged: list[float] = []
        for number in range(self.most):
            epsilon = self.first if number == 0 and self.first is not None else self.epsilon
            left = share - _composed([*charged, epsilon], about)
            step = AuditStep(do="audit", caller=self.caller, id=f"spent-{world.step}-{number}", epsilon=epsilon)
            asked = step.asked(world)
            seen = step.ask(world, asked)
            if abs(left) <= _OFF * share:
                raise ProtocolViolation("a case must not ask for a batch that fits within float64's errors alone")
            fits = left > 0 and (self.batches is None or number < self.batches)
            if seen.answered != fits or (not fits and seen.reason != "BUDGET_EXHAUSTED"):
                how = f"{len(charged)} batches and one of epsilon {epsilon:,g} under {about.rule!r}"
                raise ProtocolViolation(f"{how}: the last call {seen.text}, and {left:.6g} would be left")
            if not fits:
                return
            charged.append(epsilon)
            for told in (seen.messages[0].epsilon_remaining, world.remaining(self.caller)):
                if not -_OFF * share <= left - told <= _OFF * share:
                    raise ProtocolViolation(
                        f"{told!r} is told to be left of {share:g}; by {about.rule!r} it is {left:.9g}"
                    )
        raise ProtocolViolation(f"{self.most} batches of epsilon {self.epsilon:,g} did not use up {share:g}")


def _composed(charged: list[float], about: DescribedDeployment) -> float:
    """Return the epsilon of a series of batches at the budget's delta."""
    losses = [(epsilon, about.batch_delta) for epsilon in charged]
    surely = math.inf if about.batch_delta else sum(charged)
    match about.rule:
        case "basic":
            return sum(charged)
        case "advanced":
            squares = sum(epsilon * epsilon for epsilon in charged)
            return min(surely, squares / 2 + math.sqrt(2 * math.log(2 / about.delta) * squares))
        case "zcdp":
            gaussian = _is_gaussian(about)
            rho = sum(
                1 / gaussian_multiplier(*loss) ** 2 / 2 if gaussian else loss[0] * math.tanh(loss[0] / 2)
                for loss in losses
            )
            return min(surely, rho + 2 * math.sqrt(rho * math.log(1 / about.delta)))
        case _:
            squares = sum(1 / gaussian_multiplier(*loss) ** 2 for loss in losses)
            return gaussian_epsilon(1 / math.sqrt(squares), about.delta)


def _is_gaussian(about: DescribedDeployment) -> bool:
    told = MECHANISM_LAWS.get(about.mechanism)
    if told is None or told.is_choice or not about.batch_delta:
        return False
    return isinstance(told.error(NoiseInputs("sp", 2, 2, 1, 0.5, about.batch_delta)), Gaussian)
