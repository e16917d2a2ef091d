"""What a server says of answers before they are bought, and of whole budgets: worked out again from what is public."""

from __future__ import annotations

import math
from typing import Any, Literal

import grpc
import numpy as np
from numpy.typing import NDArray

from fairwall.compliance.v1.audit_service_pb2 import GetExpectedErrorRequest
from fairwall.laws import choice, risk
from fairwall.laws.budget_exposure import ROWS, TABLES, Offer, most_by_budget, revealed_by_budget
from fairwall.laws.exposure import Limit, is_known, revealed
from fairwall.laws.mechanisms import MECHANISM_LAWS
from fairwall.laws.metric import find_metric, strata_of
from fairwall.rpc import arrays
from fairwall.wire.metrics import number_of
from sim.conformance.audits import Audit
from sim.conformance.calls import Violation
from sim.conformance.promise import allowance_of, shares_of
from sim.conformance.target import Deployment
from sim.conformance.vocabulary import Expect, Predictions, Words
from sim.conformance.world import NotRun, World

EXPECTED = "/fairwall.compliance.v1.AuditService/GetExpectedError"

_NEAR = 1e-3
"""By how much of itself a figure may be off: figures are integrated."""

_FARTHER, _SMALL = 16.0, 0.01
"""Of one order are widths and errors that are no more times as large; nearly exact answers have any."""

Labels = NDArray[np.uint8]


def _strata(metric: str, labels: Labels) -> list[int]:
    return [int(np.count_nonzero(members)) for members in strata_of(metric, labels)]


def figures(about: Deployment, labels: Labels, metric: str, models: int, epsilon: float) -> dict[str, float]:
    """Return what a batch gives away: of everybody, of the person worst off, and of that one at most."""
    sizes, shares, names = _strata(metric, labels), shares_of(about), [about.mechanism]
    delta, exposed, most = about.batch_delta, len(sizes) * min(sizes), about.reveal_max
    if MECHANISM_LAWS[about.mechanism].noise_on == "any":
        found = choice.best(metric, sum(sizes), models, allowance_of(about, epsilon), exposed)
        names = [found.removesuffix(choice.SHRUNK)]
        if choice.is_purely_noisy(names[0]):
            names += [choice.LOW_RANK, *([choice.CELLS] if models >= choice.CELLS_FROM else [])]
    told = {"person_risk_most": risk.limit(epsilon, delta)}
    if all(map(is_known, names)):
        first, *others = (revealed(one, metric, exposed, models, epsilon, delta, shares) for one in names)
        first = min(first, most) if about.mechanism == choice.CELLS else first
        told["revealed"] = max(first, min(max(others, default=0.5), most))
        told["person_risk"] = max(risk.aimed(one, metric, exposed, epsilon, delta, shares) for one in names)
    return told


def require_figures(message: Any, expected: dict[str, float], names: tuple[str, ...], what: str) -> None:
    """Demand that a message tells figures as they are expected, and none of those that nobody knows."""
    told = {field.name: value for field, value in message.ListFields()}
    for name in names:
        one, other = told.get(name), expected.get(name)
        if (one is None) != (other is None) or not math.isclose(one or 0.0, other or 0.0, rel_tol=_NEAR):
            raise Violation(f"{what}: {name} is {one}; from public numbers it is {other}")


def require_budget(message: Any, about: Deployment, labels: Labels, share: float | None, released: float) -> None:
    """Demand that terms say what whole budgets give away, where the same attributes are `released` for so much besides.

    What is proved holds for every mechanism; by attacks it is known what one gives away where epsilons add up.
    """
    smallest = {metric: min(_strata(metric, labels)) for metric in about.metrics}
    people = min(smallest.values())
    least = shares_of(about).allowed(people)[0]
    expected = {"revealed_most": most_by_budget(people, least, about.budget + released, about.delta)}
    names, limit = (about.mechanism, *((TABLES, ROWS) if about.groups else ())), allowance_of(about, 1.0).limit
    batch, told = (about.epsilon_min, about.epsilon_max, about.batch_delta), ("revealed_most",)
    if is_known(about.mechanism) and about.rule == "basic" and not about.probabilities:
        sold = [Offer(names, *each, about.queries_max, limit, *batch, released=released) for each in smallest.items()]
        budgets = {"revealed_together": about.budget} | ({} if share is None else {"revealed": share})
        expected |= {name: max(revealed_by_budget(one, each) for one in sold) for name, each in budgets.items()}
        told = (*told, *budgets)
        for kept in message.kept:
            if kept.epsilon and max(revealed_by_budget(one, kept.epsilon) for one in sold) > kept.revealed + _NEAR:
                raise Violation(f"a budget of {kept.epsilon:g} is told to keep {kept.revealed:g}, and gives away more")
    require_figures(message, expected, told, "what a budget gives away")


class Worth(Words):
    """Asks what answers will be worth, and for such answers: of metrics, so many models, at an epsilon.

    Figures must follow from public numbers, and widths go with errors and with those that answers have.
    """

    do: Literal["worth"]
    deployment: str = ""
    asks: tuple[tuple[str, int, float], ...]

    def run(self, world: World) -> None:
        """Ask, and compare."""
        about, labels = world.about(self.deployment), world.people(self.deployment).labels
        for metric, models, epsilon in self.asks:
            request = GetExpectedErrorRequest(
                deal_id=about.deal, metric=number_of(metric), models=models, epsilon=epsilon
            )
            seen = world.call(EXPECTED, [request.SerializeToString()], deployment=self.deployment)
            if seen.status is grpc.StatusCode.UNIMPLEMENTED:
                raise NotRun("needs a server that says what answers will be worth")
            Expect().check_end(seen)
            what, told = f"{metric} of {models} at epsilon {epsilon:g}", seen.messages[0]
            names = ("revealed", "person_risk", "person_risk_most")
            require_figures(told, figures(about, labels, metric, models, epsilon), names, what)
            seed = 1 if find_metric(metric).binary else None
            name = f"worth-{world.step}-{metric}-{models}-{epsilon}"
            own: dict[str, Any] = {"metric": metric, "epsilon": epsilon, "predictions": Predictions(models=models, decisions=seed)}
            Audit(do="audit", name=name, id=name, deployment=self.deployment, **own).run(world)
            _require_widths(told, world.results.pop(name).seen.messages[0], MECHANISM_LAWS[about.mechanism], what)


def _require_widths(told: Any, answer: Any, law: Any, what: str) -> None:
    """Demand widths that go with each other, with the error, and with those of an answer."""
    if math.isnan(told.error) != law.is_choice and not law.may_be_nan or not 0 <= told.midpoint_error <= 1:
        raise Violation(f"{what}: the error to expect is {told.error}, and of the midpoint {told.midpoint_error}")
    for name, ends in (("half_width", ("low", "high")), ("likely_half_width", ("likely_low", "likely_high"))):
        low, high = (arrays.from_message(getattr(answer, end)) for end in ends)
        expected, real = getattr(told, name), float(np.median(high - low)) / 2
        pairs = ((told.error, expected), (real, expected)) if min(expected, real) > _SMALL else ()
        apart = [max(one / other, other / one) for one, other in pairs]
        unlike = math.isnan(expected) != math.isnan(real) and not law.may_be_nan and law.noise_on != "any"
        if unlike or any(each > _FARTHER for each in apart):
            raise Violation(f"{what}: {name} is {expected:.3g}, an answer's {real:.3g}, the error {told.error:.3g}")
