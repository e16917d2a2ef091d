"""The kinds of steps that request the terms of audits, and check figures about answers before they are bought."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Literal

import grpc
import numpy as np

from fairwall.arrays import Bytes
from fairwall.compliance.v1.audit_service_pb2 import GetExpectedErrorRequest
from fairwall.laws.choice import choose
from fairwall.laws.choice.prediction import SHRUNK
from fairwall.laws.mechanisms.table import MECHANISM_LAWS, MechanismLaw
from fairwall.laws.metrics.metric import find_metric, strata_of
from fairwall.laws.privacy import most_exposed
from fairwall.laws.privacy.budget_exposure import ROWS, TABLES, AuditOffer, most_by_budget, revealed_by_budget
from fairwall.laws.privacy.exposure import is_known, revealed
from fairwall.laws.studies.commitment import commit, rows_of
from fairwall.laws.studies.commitment import digest_of as digest_of_rows
from fairwall.rpc import arrays
from fairwall.wire.metrics import name_of, number_of
from fairwall.wire.numbers import EPSILON_MIN, from_message
from fairwall.wire.rows import digest_of, order_of
from sim.conformance.audits import AuditStep
from sim.conformance.calls import ProtocolViolation
from sim.conformance.promise import allowance_of, shares_of
from sim.conformance.step_base import Expect, Predictions, Words
from sim.conformance.target import DescribedDeployment
from sim.conformance.world import CaseState, NotRun

_EXPECTED = "/fairwall.compliance.v1.AuditService/GetExpectedError"

_NEAR, _FARTHER, _SMALL, _UNCUT = 1e-3, 16.0, 0.01, 0.3
"""Relative tolerance of a figure; largest ratio of an error and a width; widths too small, or too wide, for a ratio."""

_REACH, _WORLDS = 1.2, 3.0
"""Largest ratio of expected and real widths, if they are the noise's reach, and if they depend on the people."""

_SECONDS = 120.0

_TOLD = ("revealed", "person_risk", "person_risk_most")

Labels = Bytes


def _strata(metric: str, labels: Labels) -> list[int]:
    return [int(np.count_nonzero(members)) for members in strata_of(metric, labels)]


def figures(about: DescribedDeployment, labels: Labels, metric: str, models: int, epsilon: float) -> dict[str, float]:
    """Return what a batch reveals: about everybody, about the person most exposed, and at most about that person."""
    sizes, shares, names = _strata(metric, labels), shares_of(about), [about.mechanism]
    delta, exposed, most = about.batch_delta, len(sizes) * min(sizes), about.reveal_max
    if MECHANISM_LAWS[about.mechanism].noise_on == "any":
        found = choose.best(metric, sum(sizes), models, allowance_of(about, epsilon), exposed)
        names = [found.removesuffix(SHRUNK)]
        if choose.is_purely_noisy(names[0]):
            names += [choose.LOW_RANK, *([choose.CELLS] if models >= choose.CELLS_FROM else [])]
    told = {"person_risk_most": most_exposed.limit(epsilon, delta)}
    if all(map(is_known, names)):
        first, *others = (revealed(one, metric, exposed, models, epsilon, delta, shares) for one in names)
        first = min(first, most) if about.mechanism == choose.CELLS else first
        told["revealed"] = max(first, min(max(others, default=0.5), most))
        told["person_risk"] = max(most_exposed.aimed(one, metric, exposed, epsilon, delta, shares) for one in names)
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


class TermsStep(Words):
    """A step that requests the terms, every field of which must be what the policy says.

    `name` is for later steps; `same_as` in `expect` names a step that got the same terms. In the commitment the fields
    `others`, and no more, must differ from what the step that `unlike` names got. `released` is the epsilon for which
    the policy also releases the same people's attributes.
    """

    do: Literal["terms"]
    name: str = ""
    caller: str = "developer"
    deployment: str = ""
    others: tuple[str, ...] = ()
    released: float = 0.0
    expect: Expect = Expect()

    def run(self, world: CaseState) -> None:
        """Request the terms, and compare them."""
        about = world.about(self.deployment)
        seen = world.terms(self.caller, self.deployment)
        self.expect.check_end(seen)
        if not seen.answered:
            return
        told = seen.messages[0]
        share = about.shares.get(world.subject.target.developer(self.caller))
        law = MECHANISM_LAWS.get(about.mechanism)
        limits = law is not None and law.noise_on in ("any", "cells")
        facts = {
            "people": (told.people, about.people),
            "metrics": (tuple(map(name_of, told.metrics)), tuple(about.metrics)),
            "mechanism": (told.mechanism, about.mechanism),
            "queries_max": (told.queries_max, about.queries_max),
            "precision": (from_message(told.precision), about.precision),
            "epsilon_max": (told.epsilon_max, about.epsilon_max),
            "epsilon_min": (told.epsilon_min or EPSILON_MIN, about.epsilon_min or EPSILON_MIN),
            "reveal_max": (told.reveal_max or 1.0, about.reveal_max if limits else 1.0),
            "minimum_group": (told.minimum_group or 1, about.minimum_group),
            "epsilon": (told.epsilon, told.epsilon if share is None else share),
        }
        if about.by:
            facts["by"] = (tuple(told.by), tuple(about.by))
        if told.HasField("commitment"):
            whom, bound = world.people(self.deployment), told.commitment
            committed, groups = rows_of(whom.labels), whom.protected.tolist()
            facts["what is committed to"] = (bound.rows, bound.rows_digest), (len(committed), digest_of_rows(committed))
            guessed = (b"", about.deal.encode(), bound.rows_digest, bound.seed_digest, bound.terms_digest)
            if bound.root in (commit(committed, groups, b"", key).root for key in guessed):
                raise ProtocolViolation("salts follow from what is public: who is in which group can be tried out")
        if (rows := world.subject.target.rows(self.deployment or world.deployment)) and told.HasField("rows"):
            (ids, public), order = rows, order_of(rows[0])
            alone = tuple(digest_of(ids, order, {name: values}) for name, values in public.items())
            found = told.rows.id_column, tuple(told.rows.public_columns), tuple(told.rows.column_digests)
            facts["rows"] = (found, (about.ids, tuple(public), alone))
            digests = (digest_of(ids, order), digest_of(ids, order, public) if public else b"")
            facts["digests"] = ((told.rows.ids_digest, told.rows.table_digest), digests)
        for name, (found, expected) in facts.items():
            if found != expected:
                raise ProtocolViolation(f"the terms say that {name} is {found!r}; the policy says {expected!r}")
        people = world.subject.target.people(self.deployment or world.deployment)
        if people is not None and law is not None and told.HasField("budget"):
            require_budget(told.budget, about, people.labels, told.epsilon, self.released)
        if not 0 <= told.epsilon_remaining <= told.epsilon:
            raise ProtocolViolation(f"the terms say that {told.epsilon_remaining!r} of {told.epsilon!r} is left")
        if self.expect.unlike:
            earlier = world.results[self.expect.unlike].seen.messages[0].commitment
            fields = [each.name for each in earlier.DESCRIPTOR.fields]
            unlike = [name for name in fields if getattr(earlier, name) != getattr(told.commitment, name)]
            if unlike != list(self.others):
                raise ProtocolViolation(
                    f"of the commitment {unlike} are others now; these should be: {list(self.others)}"
                )
        self.expect.check_told(seen, world, self.name)
