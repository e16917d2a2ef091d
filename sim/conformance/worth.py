"""Check a server's figures about answers before they are bought, and about whole budgets, from public numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Literal

import grpc
import numpy as np
from numpy.typing import NDArray

from fairwall.compliance.v1.audit_service_pb2 import GetExpectedErrorRequest
from fairwall.laws import choice, risk
from fairwall.laws.budget_exposure import ROWS, TABLES, AuditOffer, most_by_budget, revealed_by_budget
from fairwall.laws.exposure import is_known, revealed
from fairwall.laws.mechanisms import MECHANISM_LAWS, MechanismLaw
from fairwall.laws.metric import find_metric, strata_of
from fairwall.laws.standings import SHRUNK
from fairwall.rpc import arrays
from fairwall.wire.metrics import number_of
from sim.conformance.audits import AuditStep
from sim.conformance.calls import ProtocolViolation
from sim.conformance.promise import allowance_of, shares_of
from sim.conformance.target import DescribedDeployment
from sim.conformance.vocabulary import Expect, Predictions, Words
from sim.conformance.world import CaseState, NotRun

_EXPECTED = "/fairwall.compliance.v1.AuditService/GetExpectedError"

_NEAR, _FARTHER, _SMALL, _UNCUT = 1e-3, 16.0, 0.01, 0.3
"""Relative tolerance of a figure; largest ratio of an error and a width; widths too small, or too wide, for a ratio."""

_REACH, _WORLDS = 1.2, 3.0
"""Largest ratio of expected and real widths, if they are the noise's reach, and if they depend on the people."""

_SECONDS = 120.0

_TOLD = ("revealed", "person_risk", "person_risk_most")

Labels = NDArray[np.uint8]


def _strata(metric: str, labels: Labels) -> list[int]:
    return [int(np.count_nonzero(members)) for members in strata_of(metric, labels)]


def figures(about: DescribedDeployment, labels: Labels, metric: str, models: int, epsilon: float) -> dict[str, float]:
    """Return what a batch reveals: about everybody, about the person most exposed, and at most about that person."""
    sizes, shares, names = _strata(metric, labels), shares_of(about), [about.mechanism]
    delta, exposed, most = about.batch_delta, len(sizes) * min(sizes), about.reveal_max
    if MECHANISM_LAWS[about.mechanism].noise_on == "any":
        found = choice.best(metric, sum(sizes), models, allowance_of(about, epsilon), exposed)
        names = [found.removesuffix(SHRUNK)]
        if choice.is_purely_noisy(names[0]):
            names += [choice.LOW_RANK, *([choice.CELLS] if models >= choice.CELLS_FROM else [])]
    told = {"person_risk_most": risk.limit(epsilon, delta)}
    if all(map(is_known, names)):
        first, *others = (revealed(one, metric, exposed, models, epsilon, delta, shares) for one in names)
        first = min(first, most) if about.mechanism == choice.CELLS else first
        told["revealed"] = max(first, min(max(others, default=0.5), most))
        told["person_risk"] = max(risk.aimed(one, metric, exposed, epsilon, delta, shares) for one in names)
    return told


def require_figures(message: Any, expected: dict[str, float], names: Iterable[str], what: str) -> None:
    """Demand that a message has the expected figures, and none that are not known."""
    told = {field.name: value for field, value in message.ListFields()}
    for one, other, name in ((told.get(name), expected.get(name), name) for name in names):
        if (one is None) != (other is None) or not math.isclose(one or 0.0, other or 0.0, rel_tol=_NEAR):
            raise ProtocolViolation(f"{what}: {name} is {one}; from public numbers it is {other}")


def require_budget(message: Any, about: DescribedDeployment, labels: Labels, share: float, released: float) -> None:
    """Demand the right figures for whole budgets, if the same attributes are also `released` for that epsilon.

    Proved figures hold for every mechanism; figures from attacks are known only if epsilons add up.
    """
    smallest = {metric: min(_strata(metric, labels)) for metric in about.metrics}
    people = min(smallest.values())
    least, limit = shares_of(about).allowed(people)[0], allowance_of(about, 1.0).limit
    expected = {"revealed_most": most_by_budget(people, least, about.budget + released, about.delta)}
    if is_known(about.mechanism) and about.rule == "basic" and not about.probabilities:
        names = (about.mechanism, *((TABLES, ROWS) if about.groups else ()))
        batch = (about.epsilon_min, about.epsilon_max, about.batch_delta)
        sold = [
            AuditOffer(names, *each, about.queries_max, limit, *batch, released=released) for each in smallest.items()
        ]
        for name, each in (("revealed_together", about.budget), ("revealed", share)):
            expected[name] = max(revealed_by_budget(one, each) for one in sold)
    require_figures(message, expected, expected, "what a budget gives away")


class WorthStep(Words):
    """A step that requests the expected error of answers, and such answers; `asks` has (metric, models, epsilon).

    Figures must follow from public numbers; widths must fit the errors and the widths of the answers.
    """

    do: Literal["worth"]
    deployment: str = ""
    asks: tuple[tuple[str, int, float], ...]

    def run(self, world: CaseState) -> None:
        """Request both, and compare them."""
        about, labels = world.about(self.deployment), world.people(self.deployment).labels
        for metric, models, epsilon in self.asks:
            asked: dict[str, Any] = {"metric": number_of(metric), "models": models, "epsilon": epsilon}
            request = GetExpectedErrorRequest(deal_id=about.deal, **asked).SerializeToString()
            seen = world.call(_EXPECTED, [request], deployment=self.deployment, seconds=_SECONDS)
            if seen.status is grpc.StatusCode.UNIMPLEMENTED:
                raise NotRun("needs a server that says what answers will be worth")
            Expect().check_end(seen)
            told, name = seen.messages[0], f"{metric} of {models} at epsilon {epsilon:,.10g}"
            require_figures(told, figures(about, labels, metric, models, epsilon), _TOLD, name)
            predictions = Predictions(models=models, decisions=1 if find_metric(metric).binary else None)
            own: dict[str, Any] = {"metric": metric, "epsilon": epsilon, "predictions": predictions}
            AuditStep(do="audit", name=name, id=f"{world.step} {name}", deployment=self.deployment, **own).run(world)
            if not (law := MECHANISM_LAWS[about.mechanism]).may_be_nan:
                _require_widths(told, world.results[name].seen.messages[0], law, name)


def _require_widths(expected: Any, answer: Any, law: MechanismLaw, what: str) -> None:
    """Demand widths that fit each other, the error, and the widths of an answer."""
    wrong = math.isnan(expected.error) != law.is_choice or not 0 <= expected.midpoint_error <= 1
    for width, ends in (
        (expected.half_width, ("low", "high")),
        (expected.likely_half_width, ("likely_low", "likely_high")),
    ):
        low, high = (arrays.from_message(getattr(answer, end)).astype(np.float64) for end in ends)
        real = float(np.median(high - low)) / 2
        wrong |= math.isnan(width) != math.isnan(real) and law.noise_on != "any"
        if min(width, real) > _SMALL:
            is_reach = law.interval is not None and law.interval.is_added and width < _UNCUT
            wrong |= max(expected.error / width, width / expected.error) > _FARTHER
            wrong |= max(real / width, width / real) > (_REACH if is_reach else _WORLDS)
    if wrong:
        raise ProtocolViolation(f"{what}: errors and widths do not go together, or not with an answer's: {expected}")
