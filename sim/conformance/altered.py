"""One kind of step that sends a request again with one bit changed: every one of its bits is part of the request."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

import numpy as np
from pydantic import Field

from fairwall.compliance.v1.audit_service_pb2 import AuditHeader
from fairwall.rpc import arrays
from sim.conformance.audits import Asked, Audit
from sim.conformance.calls import Violation
from sim.conformance.vocabulary import Words
from sim.conformance.world import World, lasting

_REFUSED = ("REQUEST_ID_REUSED", "PREDICTIONS_SHAPE", "QUERIES_OUT_OF_RANGE")
"""What becomes of a request whose id was used for another one, or that is none any more."""


class Altered(Words):
    """Asks for a batch, then for others under its id, each of which differs in one place, and for the batch again.

    Of `every` so many predictions one is changed, by the least that it can be, one a call; and so are the first and the
    last.
    """

    do: Literal["altered"]
    request: Audit
    every: int = Field(default=1, ge=1)

    def run(self, world: World) -> None:
        """Ask, and look at how each call ends."""
        step = self.request.model_copy(update={"name": f"altered-{world.step}", "id": f"altered-{world.step}"})
        step.run(world)
        first = world.results[step.name].seen.messages[0]
        asked = step.asked(world)
        for what, other in self._others(asked):
            seen = step.ask(world, other)
            if seen.answered or seen.reason not in _REFUSED:
                raise Violation(f"a request with {what} changed {seen.text} under a used id")
        again = step.ask(world, asked)
        if not again.answered or lasting(again.messages[0]) != lasting(first):
            raise Violation("the same request got another answer")

    def _others(self, asked: Asked) -> Iterator[tuple[str, Asked]]:
        header, rows = asked.header, asked.predictions
        yield "epsilon", asked.with_header(epsilon=math.nextafter(header.epsilon, 0.0))
        yield "epsilon", asked.with_header(epsilon=math.nextafter(header.epsilon, math.inf))
        if header.HasField("threshold"):
            yield "the threshold", asked.with_header(threshold=math.nextafter(header.threshold, math.inf))
            other = AuditHeader.FromString(header.SerializeToString())
            other.ClearField("threshold")
            yield "the threshold left out", Asked(other, rows)
        else:
            yield "the threshold", asked.with_header(threshold=0.0)
        places = list(range(0, rows.size, self.every))
        for place in dict.fromkeys([*places, rows.size - 1, rows.size // 2]):
            data = bytearray(arrays.to_message(rows).data)
            # The last bit of the number's last byte: the least that it can differ by.
            data[place * rows.itemsize] ^= 1
            changed = np.frombuffer(bytes(data), rows.dtype).reshape(rows.shape)
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
        if rows.dtype == np.uint8:
            for kind in (np.float64, np.float32):
                yield "the type", asked.with_rows(rows.astype(kind))
        elif rows.dtype == np.float32:
            yield "the type", asked.with_rows(rows.astype(np.float64))
        # The same bytes, as another shape.
        if len(rows) != rows.shape[1]:
            yield "the shape", asked.with_header(shape=rows.shape[::-1])
        yield "the shape", asked.with_header(shape=(rows.size,))
