"""The kinds of steps that ask for counts by group. A step's keys are the fields of its class."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

from fairwall.compliance.v1 import group_service_pb2 as wire
from sim.conformance import calls, group_law, law
from sim.conformance.calls import Seen, Violation
from sim.conformance.purchases import Asked, Predicted
from sim.conformance.target import Counted
from sim.conformance.vocabulary import Expect, Words
from sim.conformance.world import NotRun, Result, World

BY_GROUP = "/fairwall.compliance.v1.GroupService/ByGroup"
GROUP_TERMS = "/fairwall.compliance.v1.GroupService/GetGroupTerms"

COUNTED_MIN = 1e-4
"""The least that counts by group cost."""

_SLACK = 2.0**-13
"""By what part a rate may be below what epsilon allows, which is rounded down."""

_FARTHEST = 70.0
"""So many times its scale no noise is; with a probability of less than e^-60."""

_STEP = 2.0**-16
"""What scores are rounded to before they are added up."""

Array = NDArray[np.float64]


class GroupTerms(Words):
    """Asks for the terms of counts by group, which must be those that the target describes."""

    do: Literal["group_terms"]
    name: str = ""
    caller: str = "developer"
    deployment: str = ""
    expect: Expect = Expect()

    def run(self, world: World) -> None:
        """Ask, and compare."""
        about = world.about(self.deployment)
        if not about.groups:
            raise NotRun("needs a deployment that counts by group")
        request = wire.GetGroupTermsRequest(deal_id=about.deal)
        seen = world.call(GROUP_TERMS, [request.SerializeToString()], self.caller, deployment=self.deployment)
        self.expect.check_end(seen)
        if not seen.answered:
            return
        told, audits = seen.messages[0], world.terms(self.caller, self.deployment).messages[0]
        attributes = {each.name: tuple(each.values) for each in told.attributes}
        facts = {
            "people": (told.people, about.people),
            "attributes": (list(attributes.items()), list(about.groups.items())),
            "measures": (set(told.measures), {number_of(each) for each in about.measures}),
            "epsilon": (told.epsilon, audits.epsilon),
            "epsilon_remaining": (told.epsilon_remaining, audits.epsilon_remaining),
        }
        for name, (found, expected) in facts.items():
            if found != expected:
                raise Violation(f"the terms say that {name} is {found!r}; it should be {expected!r}")
        self.expect.check_told(seen, world, self.name)


class ByGroup(Predicted):
    """Asks for counts by group.

    Unless told otherwise it asks by all attributes together, and for the selection rate of decisions, or the scoring
    rate of scores.
    """

    METHOD: ClassVar[str] = BY_GROUP
    PART: ClassVar[type[Message]] = wire.ByGroupRequest

    do: Literal["by_group"]
    by: tuple[str, ...] | None = None
    measures: tuple[str | int, ...] | None = None

    def head(self, world: World) -> wire.ByGroupHeader:
        """Make the header, but for what is told of predictions."""
        about = world.about(self.deployment)
        if not about.groups:
            raise NotRun("needs a deployment that counts by group")
        return wire.ByGroupHeader(
            request_id=self.named(world),
            deal_id=about.deal if self.deal is None else self.deal,
            by=list(about.groups) if self.by is None else list(self.by),
            measures=[number_of(each) for each in self._asks()],  # type: ignore[misc]
            epsilon=self.spends(world),
        )

    def _asks(self) -> tuple[str | int, ...]:
        plain = "selection_rate" if self.predictions.are_decisions else "scoring_rate"
        return (plain,) if self.measures is None else self.measures

    def check_answer(self, world: World, asked: Asked, seen: Seen) -> Result:
        """Look at an answer, enter what it costs, and find its noise."""
        answer, header = seen.messages[0], asked.header
        world.enter(self.caller, self.deployment, header.request_id, header.epsilon, answer)
        self.check_rows(asked, answer)
        counted = world.subject.target.counted(self.deployment or world.deployment)
        if counted is None:
            raise NotRun("needs the table of who is in which group")
        predictions = self.in_the_order_of_the_deal(world, asked)
        found = _look(answer.release, header, counted, predictions)
        # Tables of one rate together: there may be many of them.
        uniform = np.concatenate(
            [
                group_law.uniform(np.concatenate([noise for noise, _, own in found if own == rate]), rate).ravel()
                for rate in dict.fromkeys(rate for _, _, rate in found)
            ]
        )
        exact = np.concatenate([(exact - exact.mean(axis=1, keepdims=True))[:, :-1].ravel() for _, exact, _ in found])
        noise = np.concatenate([noise.ravel() for noise, _, _ in found])
        if self.expect.noise:
            law.require_noise(2 * uniform - 1)
        return Result(seen, noise, exact, uniform, discrete=True)


def number_of(measure: str | int) -> int:
    """Return the number of a measure on the wire."""
    return measure if isinstance(measure, int) else wire.Measure.Value(f"MEASURE_{measure.upper()}")


def _look(release: Any, header: Any, counted: Counted, predictions: Array) -> list[tuple[Array, Array, float]]:
    """Check an answer's form, and return each table's noise, exact numbers, shape (rows, groups), and rate."""
    models, whole, cells = len(predictions), list(header.measures), counted.cells(list(header.by))
    measures = [each for each in whole if each != wire.MEASURE_MEAN_SCORE]
    sums = len(measures) < len(whole)
    groups = math.prod(len(counted.values[name]) for name in header.by)
    if release.groups != groups:
        raise Violation(f"an answer is about {release.groups} groups; there are {groups}")
    if sorted(model for table in release.tables for model in table.models) != list(range(models)):
        raise Violation("not every model is in one table")
    share, found = (0.5 if sums else 1.0), []
    for table in release.tables:
        own = predictions[list(table.models)]
        part = share * header.epsilon * len(own) / models
        counts, base, hits = (calls.array(getattr(table, name), name) for name in ("counts", "base", "hits"))
        inside = _strata(base, hits, _questions(measures, counted.labels, own))
        exact = np.stack([np.bincount(cells[row], minlength=groups) for row in inside]).astype(np.float64)
        _require_rate(table.rate, part / 2)
        found.append((_noise(counts, exact, table.rate), exact, table.rate))
    if release.HasField("sums") != sums:
        raise Violation("sums of scores are told if and only if the mean score was asked for")
    if sums:
        told = release.sums
        _require_rate(told.rate, (1 - share) * header.epsilon / models * _STEP)
        totals = calls.numbers(told.totals, "totals", models, "model")
        if told.people != predictions.shape[1] or not np.allclose(totals, predictions.sum(axis=1), rtol=1e-12):
            raise Violation("totals of scores are not those of the predictions")
        steps = np.rint((predictions - 0.5) / _STEP)
        exact = np.stack([np.bincount(cells, row, groups) for row in steps])
        noisy = calls.array(told.sums, "sums").astype(np.float64) / _STEP
        # All scores together are public, but for how each is rounded: rows of noise sum up to 0 as they are rounded.
        found.append((_noise(noisy, exact, told.rate), exact, told.rate))
    return found


def _noise(told: NDArray[Any], exact: Array, rate: float) -> Array:
    """Take exact numbers from those that were told: whole numbers, whose rows sum up to 0."""
    if told.shape != exact.shape:
        raise Violation(f"a table has the shape {told.shape}; it should be {exact.shape}")
    noise: Array = told.astype(np.float64) - exact
    if (noise != np.rint(noise)).any():
        raise Violation("counts are no whole numbers")
    if noise.sum(axis=1).any():
        raise Violation("the counts of a stratum do not sum up to its people")
    if np.abs(noise).max() * rate > _FARTHEST:
        raise Violation("a count is farther from the exact one than noise of its rate ever is")
    return noise


def _require_rate(rate: float, allowed: float) -> None:
    if not allowed * (1 - _SLACK) <= rate <= allowed:
        raise Violation(f"noise has the rate {rate!r}; epsilon buys one of {allowed!r} or a little less")


def _questions(measures: list[int], labels: NDArray[np.uint8], models: Array) -> tuple[Array, Array]:
    """Return who is looked at by each measure of each model, and who of these is a hit, shape (questions, people)."""
    looked, hit = [], []
    everybody = np.ones(len(labels), np.bool_)
    for row in models:
        of: dict[int, tuple[Any, Any]] = {
            wire.MEASURE_SELECTION_RATE: (everybody, row == 1),
            wire.MEASURE_TRUE_POSITIVE_RATE: (labels == 1, (labels == 1) & (row == 1)),
            wire.MEASURE_FALSE_POSITIVE_RATE: (labels == 0, (labels == 0) & (row == 1)),
            wire.MEASURE_ACCURACY: (everybody, row == labels),
            wire.MEASURE_SCORING_RATE: (everybody, row > np.median(row)),
        }
        looked += [of[measure][0] for measure in measures]
        hit += [of[measure][1] for measure in measures]
    shape = (len(looked), len(labels))
    return np.array(looked).reshape(shape), np.array(hit).reshape(shape)


def _strata(base: NDArray[Any], hits: NDArray[Any], asked: tuple[Array, Array]) -> NDArray[np.bool_]:
    """Return who is in which stratum, shape (strata, people): whom all questions look at alike."""
    (looked, hit), strata = asked, base.shape[1] if base.ndim == 2 else -1
    if base.shape != (len(looked), strata) or hits.shape != base.shape:
        raise Violation(f"strata of the shapes {base.shape} and {hits.shape} do not fit {len(looked)} questions")
    inside: NDArray[np.bool_] = np.ones((max(strata, 1), looked.shape[1]), np.bool_)
    for told, known in ((base, looked), (hits, hit)):
        inside &= (told.T[:, :, np.newaxis] == known[np.newaxis]).all(axis=1)
    if not (inside.sum(axis=0) == 1).all():
        raise Violation("not everybody is in one stratum")
    return inside
