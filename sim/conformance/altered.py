"""One kind of step that sends a request again with one bit changed: every one of its bits is part of the request."""

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
from sim.conformance.calls import Violation
from sim.conformance.purchases import Asked, repeated, sampled
from sim.conformance.services import Bought
from sim.conformance.target import Deployment
from sim.conformance.vocabulary import Words
from sim.conformance.world import World

_REFUSED = ("REQUEST_ID_REUSED", "PREDICTIONS_SHAPE", "QUERIES_OUT_OF_RANGE")
"""What becomes of a request whose id was used for another one, or that is none any more."""


class Altered(Words):
    """Asks for a batch, then for others under its id, each of which differs in one place, and for the batch again.

    Of `every` so many predictions one is changed, by the least that it can be, one a call; and so are the first and the
    last.
    """

    do: Literal["altered"]
    request: Bought
    every: int = Field(default=1, ge=1)

    def run(self, world: World) -> None:
        """Ask, and look at how each call ends."""
        step = self.request.model_copy(update={"name": f"altered-{world.step}", "id": f"altered-{world.step}"})
        step.run(world)
        first = world.results[step.name].seen
        asked = step.asked(world)
        searches = "candidates" in {field.name for field, _ in asked.header.ListFields()}
        refused = (*_REFUSED, *(["REQUEST_MALFORMED"] if searches else []))  # of other models than candidates
        for what, other in (*_changed(asked, world), *self._others(world, asked)):
            seen = step.ask(world, other)
            if seen.answered or (seen.reason not in refused and not what.startswith("the field")):
                raise Violation(f"a request with {what} changed {seen.text} under a used id")
        for rows in _as_other_types(asked):
            seen = step.ask(world, asked.with_rows(rows))
            if not seen.answered or repeated(seen) != repeated(first):
                raise Violation(f"the same numbers as {rows.dtype} got another answer: {seen.text}")
        again = step.ask(world, asked)
        if not again.answered or repeated(again) != repeated(first):
            raise Violation("the same request got another answer")

    def _others(self, world: World, asked: Asked) -> Iterator[tuple[str, Asked]]:
        header, rows = asked.header, asked.predictions
        if not rows.size:
            return
        places = sampled(world, range(0, rows.size, self.every))
        for place in dict.fromkeys([*places, rows.size - 1, rows.size // 2]):
            changed = np.ascontiguousarray(rows, rows.dtype.newbyteorder("<")).copy()
            # The last bit of the number's last byte: the least that it can differ by.
            changed.reshape(-1).view(np.uint8)[place * rows.itemsize] ^= 1
            if changed.max() <= 1:
                yield f"prediction {place}", Asked(header, changed)
        if len(rows) > 1:
            yield "the order of models", Asked(header, np.ascontiguousarray(rows[::-1]))
            yield "a model more", asked.with_rows(np.concatenate([rows, rows[-1:]]))
            yield "a model fewer", asked.with_rows(rows[:-1])
            yield "two models", Asked(header, np.ascontiguousarray(rows[[1, 0, *range(2, len(rows))]]))
        yield "the order of people", Asked(header, np.ascontiguousarray(rows[:, ::-1]))
        if len(rows) == rows.shape[1]:
            yield "rows and columns", Asked(header, np.ascontiguousarray(rows.T))
        # The same bytes, as another shape.
        if len(rows) != rows.shape[1]:
            yield "the shape", asked.with_header(shape=rows.shape[::-1])
        yield "the shape", asked.with_header(shape=(rows.size,))


def _as_other_types(asked: Asked) -> Iterator[NDArray[Any]]:
    """Give the same numbers as each other type that has them."""
    rows = asked.predictions
    if not rows.size:
        return
    for kind in (np.bool_, np.uint8, np.float32, np.float64):
        other = rows.astype(kind)
        if rows.dtype != kind and np.array_equal(other.astype(np.float64), rows.astype(np.float64)):
            yield other


def _changed(asked: Asked, world: World) -> Iterator[tuple[str, Asked]]:
    """Give requests of which one field of the header says something else, mostly what may be asked for."""
    about, known = world.about(), world.subject.target.rows(world.deployment)
    for field in asked.header.DESCRIPTOR.fields:
        if field.name in ("request_id", "deal_id", "predictions"):
            continue
        value, others = getattr(asked.header, field.name), list[Any]()
        if field.type == field.TYPE_DOUBLE:
            others = [math.nextafter(value, 0.0), math.nextafter(value, math.inf)]
        elif field.name == "metric":
            others = [number_of(name) for name in about.metrics if number_of(name) != value][:2]
        elif field.name == "by" and field.is_repeated:
            others = [[name] for name in about.groups] + [list(about.groups), list(about.groups)[::-1]]
        elif field.name == "by":
            # The first column may be named or not.
            others = [name for name in about.by if {name, value} != {next(iter(about.by)), ""}]
        elif field.name == "candidates" and asked.header.HasField(field.name):
            others = [None, *_other_candidates(value)]
        elif field.name == "measures":
            others = [[number_of_measure(name)] for name in about.measures] + [[*value, *_more(value, about)]]
        elif field.name == "rows_digest" and known is not None:
            others = [b"", digest_of(known[0], order_of(known[0]))]
        if field.has_presence and field.type == field.TYPE_DOUBLE:
            others += [None] if asked.header.HasField(field.name) else [0.0]
        yield from (
            (f"the field {field.name}", asked.with_header(**{field.name: other})) for other in others if other != value
        )


def _other_candidates(told: Candidates) -> Iterator[Candidates]:
    """Give what candidates might be as well, one thing otherwise in each."""
    others: dict[str, Any] = {
        "names": [*told.names[:-1], f"{told.names[-1]}x"],
        "utilities": [*told.utilities[:-1], math.nextafter(told.utilities[-1], 0.0)],
        "baseline": (told.baseline + 1) % len(told.names),
        "at_least": math.nextafter(told.at_least, -1.0),
    }
    for name, value in others.items():
        other = Candidates()
        other.CopyFrom(told)
        other.ClearField(name)
        other.MergeFrom(Candidates(**{name: value}))
        yield other


def _more(measures: Sequence[int], about: Deployment) -> list[int]:
    """Return a measure more, the first that is not asked for."""
    return [number for name in about.measures if (number := number_of_measure(name)) not in measures][:1]
