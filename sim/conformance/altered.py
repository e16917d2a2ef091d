"""The kind of step that repeats a request with one bit changed: every bit is part of the request."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fairwall.compliance.v1.audit_service_pb2 import Candidates
from fairwall.wire.metrics import number_of
from fairwall.wire.rows import digest_of, order_of
from sim.conformance.by_group import number_of as number_of_measure
from sim.conformance.calls import ProtocolViolation
from sim.conformance.purchases import SentRequest, repeated, sampled
from sim.conformance.services import Bought
from sim.conformance.target import DescribedDeployment
from sim.conformance.vocabulary import Words
from sim.conformance.world import CaseState

_REFUSED = ("REQUEST_ID_REUSED", "PREDICTIONS_SHAPE", "QUERIES_OUT_OF_RANGE")
"""Reasons for refusing a request whose id was used for another one, or that is no longer valid."""


class Altered(Words):
    """A step that requests a batch, then others under its id that differ in one place each, then the batch again.

    One in `every` predictions is changed, by the smallest possible amount, one per call; so are the first, the middle
    and the last one.
    """

    do: Literal["altered"]
    request: Bought
    every: int = Field(default=1, ge=1)

    def run(self, world: CaseState) -> None:
        """Make the requests, and check how each call ends."""
        step = self.request.model_copy(update={"name": f"altered-{world.step}", "id": f"altered-{world.step}"})
        step.run(world)
        first = world.results[step.name].seen
        asked = step.asked(world)
        searches = "candidates" in {field.name for field, _ in asked.header.ListFields()}
        refused = (*_REFUSED, *(["REQUEST_MALFORMED"] if searches else []))  # of other models than candidates
        for what, other in (*_changed(asked, world), *self._others(world, asked)):
            seen = step.ask(world, other)
            if seen.answered or (seen.reason not in refused and not what.startswith("the field")):
                raise ProtocolViolation(f"a request with {what} changed {seen.text} under a used id")
        for rows in _as_other_types(asked):
            seen = step.ask(world, asked.with_rows(rows))
            if not seen.answered or repeated(seen) != repeated(first):
                raise ProtocolViolation(f"the same numbers as {rows.dtype} got another answer: {seen.text}")
        again = step.ask(world, asked)
        if not again.answered or repeated(again) != repeated(first):
            raise ProtocolViolation("the same request got another answer")

    def _others(self, world: CaseState, request: SentRequest) -> Iterator[tuple[str, SentRequest]]:
        header, rows = request.header, request.predictions
        if not rows.size:
            return
        places = sampled(world, range(0, rows.size, self.every))
        for place in dict.fromkeys([*places, rows.size - 1, rows.size // 2]):
            changed = np.ascontiguousarray(rows, rows.dtype.newbyteorder("<")).copy()
            # The least significant bit: the smallest possible difference.
            changed.reshape(-1).view(np.uint8)[place * rows.itemsize] ^= 1
            if changed.max() <= 1:
                yield f"prediction {place}", SentRequest(header, changed)
        if len(rows) > 1:
            yield "the order of models", SentRequest(header, np.ascontiguousarray(rows[::-1]))
            yield "a model more", request.with_rows(np.concatenate([rows, rows[-1:]]))
            yield "a model fewer", request.with_rows(rows[:-1])
            yield "two models", SentRequest(header, np.ascontiguousarray(rows[[1, 0, *range(2, len(rows))]]))
        yield "the order of people", SentRequest(header, np.ascontiguousarray(rows[:, ::-1]))
        if len(rows) == rows.shape[1]:
            yield "rows and columns", SentRequest(header, np.ascontiguousarray(rows.T))
        # The same bytes, as another shape.
        if len(rows) != rows.shape[1]:
            yield "the shape", request.with_header(shape=rows.shape[::-1])
        yield "the shape", request.with_header(shape=(rows.size,))


def _as_other_types(request: SentRequest) -> Iterator[NDArray[Any]]:
    """Yield the same numbers in every other type that can hold them."""
    rows = request.predictions
    if not rows.size:
        return
    for kind in (np.bool_, np.uint8, np.float32, np.float64):
        other = rows.astype(kind)
        if rows.dtype != kind and np.array_equal(other.astype(np.float64), rows.astype(np.float64)):
            yield other


def _changed(request: SentRequest, world: CaseState) -> Iterator[tuple[str, SentRequest]]:
    """Yield requests with one field of the header changed, mostly to an allowed value."""
    about, known = world.about(), world.subject.target.rows(world.deployment)
    for field in request.header.DESCRIPTOR.fields:
        if field.name in ("request_id", "deal_id", "predictions"):
            continue
        value, others = getattr(request.header, field.name), list[Any]()
        if field.type == field.TYPE_DOUBLE:
            others = [math.nextafter(value, 0.0), math.nextafter(value, math.inf)]
        elif field.name == "metric":
            others = [number_of(name) for name in about.metrics if number_of(name) != value][:2]
        elif field.name == "by" and field.is_repeated:
            others = [[name] for name in about.groups] + [list(about.groups), list(about.groups)[::-1]]
        elif field.name == "by":
            # The first column may be named or not.
            others = [name for name in about.by if {name, value} != {next(iter(about.by)), ""}]
        elif field.name == "candidates" and request.header.HasField(field.name):
            others = [None, *_other_candidates(value)]
        elif field.name == "measures":
            others = [[number_of_measure(name)] for name in about.measures] + [[*value, *_more(value, about)]]
        elif field.name == "rows_digest" and known is not None:
            others = [b"", digest_of(known[0], order_of(known[0]))]
        if field.has_presence and field.type == field.TYPE_DOUBLE:
            others += [None] if request.header.HasField(field.name) else [0.0]
        yield from (
            (f"the field {field.name}", request.with_header(**{field.name: other}))
            for other in others
            if other != value
        )


def _other_candidates(candidates: Candidates) -> Iterator[Candidates]:
    others: dict[str, Any] = {
        "names": [*candidates.names[:-1], f"{candidates.names[-1]}x"],
        "utilities": [*candidates.utilities[:-1], math.nextafter(candidates.utilities[-1], 0.0)],
        "baseline": (candidates.baseline + 1) % len(candidates.names),
        "at_least": math.nextafter(candidates.at_least, -1.0),
    }
    for name, value in others.items():
        other = Candidates()
        other.CopyFrom(candidates)
        other.ClearField(name)
        other.MergeFrom(Candidates(**{name: value}))
        yield other


def _more(measures: Sequence[int], about: DescribedDeployment) -> list[int]:
    return [number for name in about.measures if (number := number_of_measure(name)) not in measures][:1]
