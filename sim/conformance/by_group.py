"""The kinds of steps that request counts by group. A step's keys are the fields of its class."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

from fairwall.arrays import Bools, Bytes, Floats
from fairwall.compliance.v1 import group_service_pb2 as wire
from sim.conformance import calls, group_law, law
from sim.conformance.calls import CallResult, ProtocolViolation
from sim.conformance.purchases import Predicted, SentRequest
from sim.conformance.step_base import Expect, Words
from sim.conformance.target import KnownGroups
from sim.conformance.world import CaseState, NotRun, Result

BY_GROUP = "/fairwall.compliance.v1.GroupService/ByGroup"
GROUP_TERMS = "/fairwall.compliance.v1.GroupService/GetGroupTerms"

COUNTED_MIN = 1e-4
"""Smallest epsilon of counts by group."""

_SLACK = 2.0**-13
"""Relative amount by which a rate may be below what epsilon allows, because it is rounded down."""

_FARTHEST = 70.0
"""Noise in units of its scale that is exceeded with a probability of less than e^-60."""

_NEAR = 1e-6
"""Tolerance of a whole number."""

_STEP = 2.0**-16
"""Unit to which scores are rounded before they are added up."""

_PRODUCT = 2.0**-20
"""Unit of sums of products of probabilities."""

Array = Floats


class GroupTermsStep(Words):
    """A step that requests the terms of counts by group, which must be those in the target's description."""

    do: Literal["group_terms"]
    name: str = ""
    caller: str = "developer"
    deployment: str = ""
    expect: Expect = Expect()

    def run(self, world: CaseState) -> None:
        """Request the terms, and compare them."""
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
            "golden": ({each.name for each in told.attributes if each.golden}, set(about.probabilities)),
            "measures": (set(told.measures), {number_of(each) for each in about.measures}),
            "least_share": (told.least_share, about.least_share),
            "epsilon": (told.epsilon, audits.epsilon),
            "epsilon_remaining": (told.epsilon_remaining, audits.epsilon_remaining),
        }
        for name, (found, expected) in facts.items():
            if found != expected:
                raise ProtocolViolation(f"the terms say that {name} is {found!r}; it should be {expected!r}")
        self.expect.check_told(seen, world, self.name)


class ByGroupStep(Predicted):
    """A step that requests counts by group: by default all attributes, and the selection or the scoring rate."""

    METHOD: ClassVar[str] = BY_GROUP
    PART: ClassVar[type[Message]] = wire.ByGroupRequest

    do: Literal["by_group"]
    by: tuple[str, ...] | None = None
    measures: tuple[str | int, ...] | None = None

    def head(self, world: CaseState) -> wire.ByGroupHeader:
        """Return the header, without the array header of the predictions."""
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

    def check_answer(self, world: CaseState, request: SentRequest, seen: CallResult) -> Result:
        """Check an answer, enter its cost, and return its noise."""
        answer, header = seen.messages[0], request.header
        world.enter(self.caller, self.deployment, header.request_id, header.epsilon, answer)
        self.check_rows(answer)
        counted = world.subject.target.counted(self.deployment or world.deployment)
        if counted is None:
            raise NotRun("needs the table of who is in which group")
        predictions = self.in_the_order_of_the_deal(world, request)
        if answer.release.least_share != world.about(self.deployment).least_share:
            raise ProtocolViolation(
                f"an answer has the least share {answer.release.least_share}, which is not the policy's"
            )
        if answer.release.rows:
            uniform, exact, noise = _look_at_rows(answer.release, header, counted, predictions)
        else:
            found = _look(answer.release, header, counted, predictions)
            # Tables of the same rate are taken together: there may be many.
            alike: dict[tuple[float, int], list[Array]] = {}
            for noise, _, rate in found:
                alike.setdefault((rate, noise.shape[1]), []).append(noise)
            uniform = np.concatenate(
                [group_law.uniform(np.concatenate(noises), rate).ravel() for (rate, _), noises in alike.items()]
            )
            exact = np.concatenate([_unlike(exact).ravel() for _, exact, _ in found])
            noise = np.concatenate([noise.ravel() for noise, _, _ in found])
        if self.expect.noise:
            law.require_noise(2 * uniform - 1)
        return Result(seen, noise, exact, uniform, discrete=True)


def number_of(measure: str | int) -> int:
    """Return a measure's number on the wire."""
    return measure if isinstance(measure, int) else wire.Measure.Value(f"MEASURE_{measure.upper()}")


def _look(release: Any, header: Any, counted: KnownGroups, predictions: Array) -> list[tuple[Array, Array, float]]:
    """Check an answer's form; return each table's noise, exact numbers, shape (rows, groups), and rate."""
    models, whole, by = len(predictions), list(header.measures), list(header.by)
    likely = next((name for name in by if name in counted.likely), None)
    measures = [each for each in whole if each != wire.MEASURE_MEAN_SCORE]
    sums = len(measures) < len(whole)
    groups = _groups(release, header, counted)
    if sorted(model for table in release.tables for model in table.models) != list(range(models)):
        raise ProtocolViolation("not every model is in one table")
    share, found = (0.5 if sums else 1.0), []
    for table in release.tables:
        own = predictions[list(table.models)]
        part = share * header.epsilon * len(own) / models
        counts, base, hits = (calls.array(getattr(table, name), name) for name in ("counts", "base", "hits"))
        inside = _strata(base, hits, _questions(measures, counted.labels, own))
        if likely is not None:
            _require_rate(table.rate, part * _PRODUCT / 2)
            told = counts, calls.array(table.golden, "golden")
            for numbers, exact in zip(told, _products(counted, by, likely, inside), strict=True):
                found.append((_noise(numbers, exact, table.rate), exact, table.rate))
            continue
        cells = counted.cells(by)
        exact = np.stack([np.bincount(cells[row], minlength=groups) for row in inside]).astype(np.float64)
        _require_rate(table.rate, part / 2)
        found.append((_noise(counts, exact, table.rate), exact, table.rate))
    if release.HasField("sums") != sums:
        raise ProtocolViolation("sums of scores are told if and only if the mean score was asked for")
    if sums:
        told = release.sums
        _require_rate(told.rate, (1 - share) * header.epsilon / models * _STEP)
        totals = calls.numbers(told.totals, "totals", models, "model")
        if told.people != predictions.shape[1] or not np.allclose(totals, predictions.sum(axis=1), rtol=1e-12):
            raise ProtocolViolation("totals of scores are not those of the predictions")
        steps, cells = np.rint((predictions - 0.5) / _STEP), counted.cells(by)
        exact = np.stack([np.bincount(cells, row, groups) for row in steps])
        noisy = calls.array(told.sums, "sums").astype(np.float64) / _STEP
        # The sum of all scores is public, up to rounding: the rows of noise sum to 0 for the rounded scores.
        found.append((_noise(noisy, exact, told.rate), exact, told.rate))
    return found


def _products(counted: KnownGroups, by: list[str], likely: str, inside: Bools) -> tuple[Array, Array]:
    """Return each stratum's sums of probabilities, in units: of people with unknown values, and of the others."""
    q, own, others = counted.likely[likely], counted.codes[likely], [name for name in by if name != likely]
    values, rest = q.shape[1], counted.cells(others) if others else np.zeros(len(q), np.intp)
    of_rest = np.eye(math.prod(len(counted.values[name]) for name in others))[rest]
    sure = np.where(own[:, np.newaxis] == np.arange(values), 1.0, 0.0)  # a row of zeros for unknown values
    unknown = inside * (own < 0)
    square = np.einsum("sn,no,na,nb->soab", unknown, of_rest, q, q) / _PRODUCT
    first, second = np.triu_indices(values)
    pairs = np.where(first == second, 1, 2) * square[:, :, first, second]
    golden = np.einsum("sn,no,na,nb->soab", inside, of_rest, sure, q) / _PRODUCT
    return pairs.reshape(len(inside), -1), golden.reshape(len(inside), -1)


def _groups(release: Any, header: Any, counted: KnownGroups) -> int:
    """Return the number of groups of an answer, which must name the requested attributes, values and measures."""
    asked = {name: list(counted.values[name]) for name in header.by}
    groups = math.prod(map(len, asked.values()))
    if release.groups != groups:
        raise ProtocolViolation(f"an answer is about {release.groups} groups; there are {groups}")
    if [(each.name, list(each.values)) for each in release.by] != list(asked.items()):
        raise ProtocolViolation("an answer names other groups than were asked for")
    sample = {name: int((counted.codes[name] >= 0).sum()) if name in counted.likely else 0 for name in header.by}
    if {each.name: each.golden for each in release.by} != sample:
        raise ProtocolViolation(
            "an answer does not say of how many people an attribute is known that it has by probabilities"
        )
    if list(release.measures) != list(header.measures):
        raise ProtocolViolation("an answer names other measures than were asked for")
    return groups


def _unlike(exact: Array) -> Array:
    """Return exact numbers less the mean of their rows, without the last of each row, which follows."""
    apart: Array = (exact - exact.mean(axis=1, keepdims=True))[:, :-1]
    return apart


def _look_at_rows(release: Any, header: Any, counted: KnownGroups, predictions: Array) -> tuple[Array, Array, Array]:
    """Check the form of rows; return uniform numbers, the exact number that each hides, and the noise."""
    measures, cells = list(header.measures), counted.cells(list(header.by))
    groups = _groups(release, header, counted)
    if release.tables or release.HasField("sums"):
        raise ProtocolViolation("an answer has rows, and tables or sums too")
    looked, values = _valued(measures, counted.labels, predictions)
    inside = [(calls.array(part.base, "base")[:, np.newaxis] == looked).all(axis=0) for part in release.rows]
    if not (np.sum(inside, axis=0) == 1).all() or not all(here.any() for here in inside):
        raise ProtocolViolation("not everybody is in one part")
    found: tuple[list[Array], ...] = ([], [], [])
    for part, here in zip(release.rows, inside, strict=True):
        steps, reaches = _steps(part, values[:, here], looked[:, here][:, 0]), np.array(part.reach, np.float64)
        exact = np.stack([np.bincount(cells[here], row, groups) for row in steps]).astype(np.float64)
        _require_rate(part.rate, header.epsilon)
        noise = _noise(calls.array(part.counts, "counts"), exact, 0.0)
        dimensions = len(steps) * (groups - 1)
        farthest = (dimensions + _FARTHEST * (1 + math.sqrt(dimensions))) / part.rate + 1
        if (np.abs(noise).sum(axis=1) > 2 * farthest * reaches).any():
            raise ProtocolViolation("a row is farther from the exact one than noise of its rate ever is")
        uniform, of_size = group_law.uniform_of_ball(noise, part.rate, reaches)
        # Sizes of rows and of the ball hide no exact number.
        hidden = np.pad(_unlike(exact), ((0, 0), (0, 2)))
        for numbers, more in zip(
            found, (np.append(uniform, of_size), np.append(hidden, 0.0), noise.ravel()), strict=True
        ):
            numbers.append(more)
    return np.concatenate(found[0]), np.concatenate(found[1]), np.concatenate(found[2])


def _valued(measures: list[int], labels: Bytes, models: Array) -> tuple[Array, Array]:
    """Return the people of each measure of each model, and their summands, shape (measures, people) each."""
    looked, values = [], []
    for row in models:
        for measure in measures:
            if measure == wire.MEASURE_MEAN_SCORE:
                looked.append(np.ones(len(labels)))
                values.append(row)
            else:
                ((base,), (hit,)) = _questions([measure], labels, row[np.newaxis])
                looked.append(base)
                values.append(hit)
    return np.array(looked, np.float64), np.array(values, np.float64)


def _steps(part: Any, values: Array, looked: NDArray[Any]) -> list[Array]:
    """Return what each person of a part adds to each row; measures of the same row must agree."""
    reaches, found = list(part.reach), {0: np.ones(values.shape[1])}
    if not len(part.row) == len(part.offset) == len(part.slope) == len(values) or reaches[:1] != [1]:
        raise ProtocolViolation("what is told of rows does not fit the measures, or they do not begin with people")
    for row, offset, slope, added, looks in zip(part.row, part.offset, part.slope, values, looked, strict=True):
        if not looks:
            continue
        if row == 0 or row >= len(reaches):
            if row or (added != offset).any():
                raise ProtocolViolation("a measure of which people count unlike numbers has no row")
            continue
        if abs(slope) * (reaches[row] > 1) > _STEP:
            raise ProtocolViolation("scores are rounded more coarsely than to 2^-16")
        whole = (added - offset) / (slope * reaches[row]) * reaches[row]
        steps = np.rint(whole)
        if (np.abs(steps) > reaches[row]).any() or (reaches[row] == 1 and np.abs(whole - steps).max() > _NEAR):
            raise ProtocolViolation("people count more than a row reaches, or not what a measure adds up")
        if not np.array_equal(found.setdefault(row, steps), steps):
            raise ProtocolViolation("one row is told to be two")
    if sorted(found) != list(range(len(reaches))):
        raise ProtocolViolation("a row is of no measure")
    return [found[row] for row in range(len(reaches))]


def _noise(released: NDArray[Any], exact: Array, rate: float) -> Array:
    """Return released numbers less exact ones: whole numbers whose rows sum to 0."""
    if released.shape != exact.shape:
        raise ProtocolViolation(f"a table has the shape {released.shape}; it should be {exact.shape}")
    noise: Array = released.astype(np.float64) - exact
    if (noise != np.rint(noise)).any():
        raise ProtocolViolation("counts are no whole numbers")
    if noise.sum(axis=1).any():
        raise ProtocolViolation("the counts of a stratum do not sum up to its people")
    if np.abs(noise).max() * rate > _FARTHEST:
        raise ProtocolViolation("a count is farther from the exact one than noise of its rate ever is")
    return noise


def _require_rate(rate: float, allowed: float) -> None:
    if not allowed * (1 - _SLACK) <= rate <= allowed:
        raise ProtocolViolation(f"noise has the rate {rate!r}; epsilon buys one of {allowed!r} or a little less")


def _questions(measures: list[int], labels: Bytes, models: Array) -> tuple[Array, Array]:
    """Return the people of each measure of each model, and the hits among them, shape (questions, people)."""
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


def _strata(base: NDArray[Any], hits: NDArray[Any], questions: tuple[Array, Array]) -> Bools:
    """Return the members of each stratum, shape (strata, people): all questions treat them alike."""
    (looked, hit), strata = questions, base.shape[1] if base.ndim == 2 else -1
    if base.shape != (len(looked), strata) or hits.shape != base.shape:
        raise ProtocolViolation(
            f"strata of the shapes {base.shape} and {hits.shape} do not fit {len(looked)} questions"
        )
    inside: Bools = np.ones((max(strata, 1), looked.shape[1]), np.bool_)
    for told, known in ((base, looked), (hits, hit)):
        inside &= (told.T[:, :, np.newaxis] == known[np.newaxis]).all(axis=1)
    if not (inside.sum(axis=0) == 1).all():
        raise ProtocolViolation("not everybody is in one stratum")
    return inside
